// The progress: accuracy on labels left out against their number, what it means, and likely slips.

const rate = (share) => Math.round(100 * share) + " %";
const showSummary = () => {
  const total = labelledCount, parts = [count(total, "label", "labels") + " of " + count(n, "row", "rows")];
  if (session.chunks) parts.push(count(session.chunks, "group that belongs", "groups that belong") + " together");
  const now = news.progress;
  if (now && now.accuracy !== null) {
    const then = now.n_labels === total ? "" : " with " + now.n_labels + " labels";
    parts.push("accuracy" + then + ": " + rate(now.accuracy) + " on labels left out" + (now.expected === null ? "" : ", " + percent(now.expected) + " expected on the other rows"));
  }
  $("summary").textContent = parts.join(" · ");
};
const showProgress = () => {
  const now = news.progress;
  showSummary();
  $("verdict").textContent = now ? sentence(now) : labelledCount ? "The accuracy is found when you pause." : "Give some labels; their accuracy is then found on labels left out.";
  const few = now ? now.few : [];
  $("few").classList.toggle("hidden", few.length === 0);
  if (few.length) $("few").textContent = "Too few labels to judge these classes: " + few.join(", ") + ".";
  showChart();
  showSlips();
};
const whole = (now) => (now.expected === null ? "" : "; of all rows without a label the model expects to find " + percent(now.expected));
const sentence = (now) => {
  if (now.accuracy === null) return capital(now.verdict) + ".";
  const interval = " (" + rate(now.low) + " to " + rate(now.high) + ")";
  return "With " + count(now.n_labels, "label", "labels") + ", " + rate(now.accuracy) + interval + " of labels left out are found" + whole(now) + ". " + capital(now.verdict) + ".";
};

// The chart -----------------------------------------------------------------------------
const WIDTH = 460, HEIGHT = 190, SPACE = { left: 50, right: 22, top: 10, bottom: 36 };
const showChart = () => {
  // After an undo there are fewer labels: what was found last for a number of labels counts.
  const points = [...new Map(news.history.map((p) => [p[0], p])).values()].sort((a, b) => a[0] - b[0]);
  $("chart").replaceChildren();
  $("chart-hint").textContent = "";
  if (!points.length) return;
  const most = Math.max(10, ...points.map((p) => p[0]));
  const x = (labelsThen) => SPACE.left + (labelsThen / most) * (WIDTH - SPACE.left - SPACE.right);
  const y = (share) => HEIGHT - SPACE.bottom - share * (HEIGHT - SPACE.top - SPACE.bottom);
  const text = points.map((p) => p[0] + " labels: " + rate(p[1])).slice(-1)[0];
  const chart = svg("svg", { viewBox: "0 0 " + WIDTH + " " + HEIGHT, class: "chart", role: "img", "aria-label": "Accuracy against the number of labels; last, " + text });
  for (const share of [0, 0.5, 1]) chart.append(svg("line", { class: "grid", x1: SPACE.left, x2: WIDTH - SPACE.right, y1: y(share), y2: y(share) }), svg("text", { class: "soft", x: SPACE.left - 6, y: y(share) + 4, "text-anchor": "end" }, 100 * share + " %"));
  const [ticksX] = ticks(0, most, 5);
  for (const tick of ticksX) chart.append(svg("text", { class: "soft", x: x(tick), y: HEIGHT - 20, "text-anchor": "middle" }, tick));
  chart.append(svg("text", { class: "soft", x: WIDTH - SPACE.right, y: HEIGHT - 4, "text-anchor": "end" }, "labels given"));
  const path = (pick, chosen) => chosen.map((p, k) => (k ? "L" : "M") + x(p[0]).toFixed(1) + " " + y(pick(p)).toFixed(1)).join("");
  const known = points.filter((p) => p[4] !== null);
  chart.append(svg("path", { class: "pale", d: path((p) => p[3], points) + path((p) => p[2], points.slice().reverse()).replace("M", "L") + "Z" }));
  if (known.length) chart.append(svg("path", { class: "limit", d: path((p) => p[4], known) }));
  chart.append(svg("path", { class: "line", d: path((p) => p[1], points) }));
  for (const p of points.slice(-1)) chart.append(svg("circle", { class: "fill", cx: x(p[0]), cy: y(p[1]), r: 4 }));
  $("chart").append(chart);
  $("chart-hint").textContent = "The band holds the accuracy with a probability of 95 %" + (known.length ? "; dashed is what the same model reaches with labels in another order" : "") + ". Rows that are offered are harder than most, so labels left out are found less often than other rows.";
};

// Likely slips ---------------------------------------------------------------------------
const MOST_SLIPS = 6;
const slipItem = ({ row, given, found, p }) => {
  const item = element("li"), button = element("button");
  button.type = "button";
  button.append(element("b", data.ids[row]), " is ", element("b", session.classes[given]), " by its label, ", element("b", session.classes[found]), " by a model that did not see it (label " + percent(p) + ")");
  button.addEventListener("click", (event) => { choose(row, "This label may be a slip."); leaveButton(event); });
  item.append(button);
  return item;
};
const showSlips = () => {
  const slips = news.slips.filter(({ row, given }) => labels[row] === given);
  $("slips-box").classList.toggle("hidden", slips.length === 0);
  $("slips").replaceChildren(...slips.slice(0, MOST_SLIPS).map(slipItem));
  if (slips.length > MOST_SLIPS) $("slips").append(element("li", "and " + (slips.length - MOST_SLIPS) + " more", "hint"));
};
