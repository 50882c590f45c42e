// Talking with the server: what is done is asked for, what is new is taken in, the map moves.

const session = data.session;                          // classes, counts, sequence, what can be undone
const labels = new Int32Array(bytes(data.labels));     // per row: number of its class, -1 for none
const predicted = new Uint16Array(bytes(columns[0].values));
let news = data.news;                                  // version, queue, slips, progress, history
const shownClass = valuesOf(columns[0]);               // per row: its label, or its prediction
const certainty = valuesOf(columns[1]);

const ask = async (path, body) => {
  const how = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(location.pathname + path, how), values = await answer.json();
  if (!answer.ok) throw new Error(values.error || "the server refused");
  return values;
};

// What the page says ------------------------------------------------------------------
const announce = (text) => { $("live").textContent = ""; requestAnimationFrame(() => { $("live").textContent = text; }); };
let toldAt = 0;
const inform = (text, isBad) => {
  const box = $("told");
  box.textContent = text;
  box.classList.toggle("bad", Boolean(isBad));
  box.classList.remove("hidden");
  clearTimeout(toldAt);
  toldAt = setTimeout(() => box.classList.add("hidden"), isBad ? 15000 : 6000);
};

// Labels ----------------------------------------------------------------------------
const paintLabel = (i) => {
  labelled[i] = labels[i] >= 0 ? 1 : 0;
  shownClass[i] = labels[i] >= 0 ? labels[i] : predicted[i];
};
const countLabels = () => { labelledCount = session.counts.reduce((sum, size) => sum + size, 0); };
const takeSummary = (values) => {
  for (const key of ["sequence", "classes", "counts", "chunks", "undoable"]) session[key] = values[key];
  columns[0].levels = session.classes;
  countLabels();
};
const afterLabels = () => {
  places = null;
  if (columns[state.column] !== columns[0]) groupRows();
  showLegend(); showClassesOfCard(); showSummary(); redraw();
};
const takeLabels = (values) => {
  if (values.sequence <= session.sequence) return;
  if (values.sequence > session.sequence + 1) { fetchLabels(); return; }
  values.rows.forEach((row, k) => { labels[row] = values.labels[k]; paintLabel(row); });
  takeSummary(values);
  afterLabels();
  passRows(values);
};
const fetchLabels = async () => {
  const values = await ask("labels");
  labels.set(new Int32Array(bytes(values.labels)));
  takeSummary(values);
  for (let i = 0; i < n; i++) paintLabel(i);
  afterLabels();
};
// The answer comes when the disk has it; only then is a label drawn.
const act = async (asked) => {
  try {
    takeLabels(await ask("act", asked));
    return true;
  } catch (error) {
    inform("Not saved: " + error.message, true);
    announce("Not saved: " + error.message);
    return false;
  }
};

// The map moves to its new place ------------------------------------------------------------
const still = window.matchMedia("(prefers-reduced-motion: reduce)");
const MOVE = 450;   // milliseconds
let moving = null;  // where rows and view come from and go to
const viewOf = () => { const kept = state.view; showAll(); const whole = state.view; state.view = kept; return whole; };
const moveTo = (goal) => {
  const start = Z.map((values) => values.slice()), before = state.view, wasWhole = state.whole;
  Z.forEach((values, j) => values.set(goal[j]));
  const after = wasWhole ? viewOf() : before;
  Z.forEach((values, j) => values.set(start[j]));
  state.whole = wasWhole;
  moving = { start, goal, before, after, from: performance.now(), lasts: still.matches ? 0 : MOVE };
  requestAnimationFrame(step);
};
const eased = (t) => (t < 0.5 ? 2 * t * t : 1 - 2 * (1 - t) * (1 - t));
const step = () => {
  if (!moving) return;
  const { start, goal, before, after, from, lasts } = moving, t = lasts ? Math.min(1, (performance.now() - from) / lasts) : 1, part = eased(t);
  Z.forEach((values, j) => { const a = start[j], b = goal[j]; for (let i = 0; i < n; i++) values[i] = a[i] + part * (b[i] - a[i]); });
  if (after && before && state.whole) state.view = Object.fromEntries(Object.keys(after).map((k) => [k, before[k] + part * (after[k] - before[k])]));
  state.moving = t < 1;
  places = null;
  if (t < 1) requestAnimationFrame(step); else moving = null;
  canvas.dataset.moves = String(Number(canvas.dataset.moves || 0) + (t < 1 ? 0 : 1));
  stale = true; draw();
};

// The state ----------------------------------------------------------------------------
let fetching = false, again = false;
const fetchState = async () => {
  if (fetching) { again = true; return; }
  fetching = true;
  try { takeState(await ask("state")); } finally { fetching = false; }
  if (again) { again = false; fetchState(); }
};
const takeState = (values) => {
  if (values.version < news.version) return;
  predicted.set(new Uint16Array(bytes(values.predicted)));
  certainty.set(floats(values.certainty));
  covariance.values = floats(values.covariance);
  for (let i = 0; i < n; i++) paintLabel(i);
  if (columns[state.column] !== columns[0]) groupRows();
  news = values;
  canvas.dataset.version = String(values.version);
  showLegend();
  moveTo(values.z.map(floats));
  refreshCard(values.queue);
  takeQueue(values.queue);
  showProgress();
};
const fetchProgress = async () => {
  Object.assign(news, await ask("progress"));
  showProgress(); showClassesOfCard();
};

// The stream of news; a browser opens it again by itself ------------------------------------
const events = new EventSource(location.pathname + "events");
const hears = (kind, take) => events.addEventListener(kind, (event) => take(JSON.parse(event.data)));
hears("hello", (known) => {
  $("lost").classList.add("hidden");
  if (known.sequence !== session.sequence) fetchLabels();
  if (known.version !== news.version) fetchState();
});
hears("labels", takeLabels);
hears("state", fetchState);
hears("progress", fetchProgress);
hears("trouble", ({ text }) => inform(text, true));
events.addEventListener("error", () => {
  $("lost").textContent = "The server does not answer. What was labelled is kept in " + session.folder + "; start gnomon label again to go on.";
  $("lost").classList.remove("hidden");
});
