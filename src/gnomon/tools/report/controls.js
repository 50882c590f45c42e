// The controls: pointers and keys on the picture, legend, choosers, search, light and dark, print.

// Rows under the pointer ----------------------------------------------------------
const nearest = (cx, cy, reach) => {
  let best = -1, least = reach * reach;
  const x = Z[state.across], y = Z[state.up], v = state.view;
  const ax = roomAcross() / (v.x1 - v.x0), ay = roomUp() / (v.y1 - v.y0);
  const ux = v.x0 + (cx - margin.left) / ax, uy = v.y0 + (state.height - margin.bottom - cy) / ay;
  for (let i = 0; i < n; i++) {
    const dx = (x[i] - ux) * ax, dy = (y[i] - uy) * ay, far = dx * dx + dy * dy;
    if (far < least && isShown(i)) { least = far; best = i; }
  }
  return best;
};
// What a panel can show of a row: more would be thousands where there are thousands of columns.
const MOST_PAIRS = 60;
const pairsOf = (i, most) => {
  const chosen = columns[state.column], others = columns.slice(0, most).filter((c) => c !== chosen);
  const list = [chosen, ...others].slice(0, most).map((column) => [column.name, valueOf(column, i)]);
  if (labelled) list.unshift(["label", labelled[i] ? "given" : "none, predicted"]);
  return list;
};
const axisPairs = (i) => axisNames.map((name, j) => {
  const sd = covariance ? " ± " + formatNumber(Math.sqrt(packed(i, j, j))) : "";
  return [name, formatNumber(Z[j][i]) + sd];
});
const showDetail = (i) => {
  const box = $("detail"), list = element("dl");
  if (i < 0) { box.replaceChildren(element("p", "Point at a row, or click one to keep it here.", "hint")); return; }
  for (const [name, value] of [...axisPairs(i), ...pairsOf(i, MOST_PAIRS)]) list.append(element("dt", name), element("dd", value));
  box.replaceChildren(element("b", data.ids[i]), list);
  if (columns.length > MOST_PAIRS) box.append(element("p", "and " + count(columns.length - MOST_PAIRS, "column", "columns") + " more", "hint"));
};
const showTip = (i) => {
  const tip = $("tip");
  tip.classList.toggle("hidden", i < 0);
  if (i < 0) return;
  const lines = pairsOf(i, 3).map(([name, value]) => element("div", short(name, 40) + ": " + short(value, 80)));
  tip.replaceChildren(element("b", data.ids[i]), ...lines);
  const [x, y] = pointOf(i);
  tip.dataset.x = String(x); tip.dataset.y = String(y);
  tip.style.left = Math.max(4, x + 14 + tip.offsetWidth > state.width ? x - 14 - tip.offsetWidth : x + 14) + "px";
  tip.style.top = Math.max(4, Math.min(state.height - tip.offsetHeight - 4, y + 14)) + "px";
};
const hover = (i) => {
  if (i === state.hover) return;
  state.hover = i;
  showTip(i);
  if (state.kept < 0) showDetail(i);
  remark();
};
const keep = (i) => {
  state.kept = i;
  showDetail(i);
  revealRow(i);
  remark();
};
const show = (i) => {
  if (!inView(i)) { showAll(); redraw(); }
  if (state.hidden.delete(group[i])) { showLegend(); redraw(); }
  state.kept = i;
  showDetail(i);
  state.hover = -1; hover(i);
};
const markRow = (i) => { show(i); repaintRows(); };
const goTo = (i) => {
  show(i); revealRow(i);
  $("embedding").scrollIntoView({ block: "start" });
};

// Pointers: drag to move, or to select; Shift and drag is a box ---------------------
let gesture = null;   // of the pointer that is down: what it does, where it was, how far it went
let isArmed = false;  // the wheel zooms after a click, until the pointer leaves
const place = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
canvas.addEventListener("pointerdown", (event) => {
  if (event.button > 0 || !event.isPrimary) return;
  const at = place(event);
  gesture = { id: event.pointerId, does: event.shiftKey ? "box" : state.mode, start: at, at, moved: 0, touch: event.pointerType === "touch" };
  isArmed = true;
  if (event.pointerType === "mouse" && event.isTrusted) canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  const at = place(event);
  if (!gesture) { if (event.pointerType !== "touch") hover(nearest(...at, 22)); return; }
  if (event.pointerId !== gesture.id) return;
  const before = gesture.at;
  gesture.at = at;
  gesture.moved += Math.hypot(at[0] - before[0], at[1] - before[1]);
  if (gesture.moved > 3) dragTo(at, before);
});
const dragTo = (at, before) => {
  const { does, start, touch } = gesture;
  hover(-1);
  if (does === "move") { if (!touch) pan(at[0] - before[0], at[1] - before[1]); return; }
  if (does === "box") state.path = [start, [at[0], start[1]], at, [start[0], at[1]]];
  else if (!state.path) state.path = [start, at];
  else state.path.push(at);
  remark();
};
canvas.addEventListener("pointerup", (event) => {
  if (!gesture || event.pointerId !== gesture.id) return;
  const done = gesture, path = state.path;
  gesture = null; state.path = null;
  if (path) { setSelection(rowsWithin(path), event.ctrlKey || event.metaKey); return; }
  if (done.moved > 3) return;
  const i = nearest(...place(event), 26);
  hover(i); keep(i);
});
const dropGesture = () => { gesture = null; state.path = null; remark(); };
canvas.addEventListener("pointercancel", () => {
  if (gesture && gesture.touch && gesture.does === "move") tell("Two fingers move and zoom the picture.");
  dropGesture();
});
canvas.addEventListener("pointerleave", () => { hover(-1); if (!gesture) isArmed = false; });
canvas.addEventListener("dblclick", (event) => { if (state.mode === "move") zoom(0.5, ...place(event)); });

// Wheel and fingers: the page scrolls unless the picture is meant --------------------
let telling = 0;
const tell = (text) => {
  $("how").textContent = text;
  $("how").classList.add("shown");
  clearTimeout(telling);
  telling = setTimeout(() => $("how").classList.remove("shown"), 1600);
};
const CONTROL = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";
canvas.addEventListener("wheel", (event) => {
  if (!(isArmed || event.ctrlKey || event.metaKey)) { tell("To zoom, hold " + CONTROL + " and scroll, or click the picture first."); return; }
  event.preventDefault();
  zoom(Math.exp(event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015)), ...place(event));
}, { passive: false });
let fingers = null;   // middle of two fingers and how far apart they are
const fingersOf = (event) => {
  const [a, b] = [...event.touches].map(place);
  return { x: (a[0] + b[0]) / 2, y: (a[1] + b[1]) / 2, apart: Math.max(1, Math.hypot(a[0] - b[0], a[1] - b[1])) };
};
canvas.addEventListener("touchstart", (event) => {
  if (event.touches.length !== 2) return;
  event.preventDefault();
  dropGesture();
  fingers = fingersOf(event);
}, { passive: false });
canvas.addEventListener("touchmove", (event) => {
  if (event.touches.length !== 2 || !fingers) return;
  event.preventDefault();
  const now = fingersOf(event);
  pan(now.x - fingers.x, now.y - fingers.y);
  zoom(fingers.apart / now.apart, now.x, now.y);
  fingers = now;
}, { passive: false });
for (const type of ["touchend", "touchcancel"]) canvas.addEventListener(type, () => { fingers = null; });

// Keys --------------------------------------------------------------------------
const MOVES = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
canvas.addEventListener("keydown", (event) => {
  if (MOVES[event.key]) { event.preventDefault(); pan(...MOVES[event.key]); }
  if (event.key === "+" || event.key === "=") zoom(0.8);
  if (event.key === "-") zoom(1.25);
  if (event.key === "0") { showAll(); redraw(); }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.target.matches("input, select")) return;
  dropGesture(); keep(-1); hover(-1);
  isArmed = false;
  if (selection.count) setSelection([]);
});
$("closer").addEventListener("click", () => zoom(0.7));
$("farther").addEventListener("click", () => zoom(1 / 0.7));
$("reset").addEventListener("click", () => { showAll(); redraw(); });

// Legend -------------------------------------------------------------------------
const groupSizes = () => {
  const sizes = new Map();
  for (const g of group) sizes.set(g, (sizes.get(g) || 0) + 1);
  return sizes;
};
const keyImage = (g) => {
  const image = document.createElement("canvas"), sharp = window.devicePixelRatio || 1;
  image.width = image.height = 16 * sharp;
  image.style.width = image.style.height = "16px";
  const c = image.getContext("2d");
  c.scale(sharp, sharp);
  drawMarker(c, 8, 8, 5, g, false);
  return image;
};
const entry = (g, name, size) => {
  const button = element("button"), item = element("li");
  button.type = "button"; button.title = name;
  button.setAttribute("aria-pressed", String(!state.hidden.has(g)));
  button.append(keyImage(g), element("span", name, "name"), element("span", size.toLocaleString("en"), "count"));
  button.addEventListener("click", () => toggle(g));
  item.append(button);
  return item;
};
const toggle = (g) => {
  if (!state.hidden.delete(g)) state.hidden.add(g);
  hover(-1);
  showLegend(); redraw();
  [...$("legend").querySelectorAll("button")].find((b) => b.title === (g === NONE ? "no value" : columns[state.column].levels[g])).focus();
};
const showLegend = () => {
  const column = columns[state.column];
  $("legend-title").textContent = column.name;
  $("legend").classList.toggle("hidden", !column.levels);
  $("scale").classList.toggle("hidden", Boolean(column.levels));
  $("names").classList.toggle("hidden", !column.levels);
  if (column.levels) showClasses(column); else showScale(column);
};
const showClasses = (column) => {
  const sizes = groupSizes(), items = column.levels.map((name, g) => [g, name, sizes.get(g) || 0]);
  if (sizes.has(NONE)) items.push([NONE, "no value", sizes.get(NONE)]);
  const isShort = items.every((item) => item[1].length <= 10);
  $("legend").classList.toggle("pairs", items.length > 12 && isShort);
  $("legend").classList.toggle("long", items.length > 12 && !isShort);
  $("legend").replaceChildren(...items.map((item) => entry(...item)));
};
const showScale = (column) => {
  const c = $("ramp").getContext("2d");
  for (let i = 0; i < 256; i++) { c.fillStyle = viridis(i / 255); c.fillRect(i, 0, 1, 1); }
  $("low").textContent = format(column.kind, range[0]);
  $("high").textContent = format(column.kind, range[1]);
};

// Choosers ------------------------------------------------------------------------
const press = (id, pressed) => $(id).setAttribute("aria-pressed", String(pressed));
const fill = (select, names, chosen) => {
  select.replaceChildren(...names.map((name, i) => { const o = element("option", name); o.value = String(i); return o; }));
  select.value = String(chosen);
};
const turnTo = (side, axis) => { state[side] = axis; places = null; hover(-1); showAll(); redraw(); };
let axesBefore = [0, Math.min(1, q - 1)];
for (const side of ["across", "up"]) {
  fill($(side), data.axes, axesBefore[side === "up" ? 1 : 0]);
  $(side).addEventListener("change", (event) => turnTo(side, Number(event.target.value)));
}
// The plane: a layout of all axes by their neighbours, where there is one, or two axes.
const showPlane = (byNeighbours) => {
  if (!isLayout()) axesBefore = [state.across, state.up];
  [state.across, state.up] = byNeighbours ? [q, q + 1] : axesBefore;
  press("neighbours", byNeighbours); press("axes", !byNeighbours);
  for (const side of ["across", "up"]) $(side).parentElement.classList.toggle("hidden", byNeighbours);
  $("ellipses").classList.toggle("hidden", !hasSpread());
  $("arrows").classList.toggle("hidden", !data.loadings || byNeighbours);
  places = null; hover(-1);
};
for (const name of ["neighbours", "axes"]) $(name).addEventListener("click", () => { showPlane(name === "neighbours"); showAll(); redraw(); });
const recolour = (i) => {
  state.column = i; state.hidden.clear(); sprites = new Map(); places = null;
  groupRows(); chooseNames(); showLegend(); buildTable(); redraw();
  if (state.kept >= 0) showDetail(state.kept);
};
const chooseNames = () => {
  const levels = columns[state.column].levels;
  state.names = levels !== null && levels.length <= MOST_NAMES;
  press("names", state.names);
};
for (const name of ["names", "ellipses", "arrows", "density"]) $(name).addEventListener("click", () => {
  state[name] = !state[name];
  press(name, state[name]);
  redraw();
});
const MODES = ["move", "box", "lasso"];
const setMode = (mode) => {
  state.mode = mode;
  for (const other of MODES) press(other, other === mode);
  canvas.classList.toggle("selecting", mode !== "move");
};
for (const mode of MODES) $(mode).addEventListener("click", () => setMode(mode));

// Colours by name: a list to choose from, or where there are many columns one to search in.
const MOST_OPTIONS = 40, MOST_CHOICES = 50;
const matches = (text) => {
  const wanted = text.trim().toLowerCase(), first = [], later = [];
  columns.forEach((column, i) => {
    const at = column.name.toLowerCase().indexOf(wanted);
    if (at === 0) first.push(i); else if (at > 0) later.push(i);
  });
  return [...first, ...later];
};
let choices = [], active = -1;
const closeChoices = () => {
  $("colour-list").classList.add("hidden");
  $("colour-name").setAttribute("aria-expanded", "false");
  $("colour-name").removeAttribute("aria-activedescendant");
  $("colour-name").value = columns[state.column].name;
  active = -1;
};
const choice = (i, k) => {
  const item = element("li", columns[i].name);
  item.id = "choice" + k;
  item.setAttribute("role", "option");
  item.addEventListener("pointerdown", (event) => { event.preventDefault(); recolour(i); closeChoices(); });
  return item;
};
const showChoices = (text) => {
  const found = matches(text);
  choices = found.slice(0, MOST_CHOICES);
  const items = choices.map(choice), rest = found.length - choices.length;
  if (!found.length) items.push(element("li", "no column has that in its name", "hint"));
  if (rest) items.push(element("li", "and " + rest.toLocaleString("en") + " more: write a part of the name", "hint"));
  $("colour-list").replaceChildren(...items);
  $("colour-list").classList.remove("hidden");
  $("colour-name").setAttribute("aria-expanded", "true");
  activate(text ? 0 : -1);
};
const activate = (k) => {
  active = Math.max(-1, Math.min(choices.length - 1, k));
  [...$("colour-list").children].forEach((item, place) => item.setAttribute("aria-selected", String(place === active)));
  if (active < 0) return;
  $("colour-name").setAttribute("aria-activedescendant", "choice" + active);
  $("choice" + active).scrollIntoView({ block: "nearest" });
};
const chooserKey = (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) { event.preventDefault(); activate(active + step); }
  if (event.key === "Enter" && active >= 0) { recolour(choices[active]); closeChoices(); }
  if (event.key === "Escape") closeChoices();
};
const many = columns.length > MOST_OPTIONS;
$("colour").parentElement.classList.toggle("hidden", many);
$("colour-name").parentElement.parentElement.classList.toggle("hidden", !many);
if (many) {
  const box = $("colour-name");
  box.placeholder = "one of " + count(columns.length, "column", "columns");
  box.addEventListener("focus", () => { box.select(); showChoices(""); });
  box.addEventListener("input", () => showChoices(box.value));
  box.addEventListener("keydown", chooserKey);
  box.addEventListener("blur", closeChoices);
  closeChoices();
} else {
  fill($("colour"), columns.map((c) => c.name), state.column);
  $("colour").addEventListener("change", (event) => recolour(Number(event.target.value)));
}

// Search for a row -------------------------------------------------------------------
const MOST_FOUND = 500, MOST_LISTED = 12;
const foundItem = (i) => {
  const item = element("li"), button = element("button", data.ids[i]);
  button.type = "button"; button.title = data.ids[i];
  button.addEventListener("click", () => goTo(i));
  item.append(button);
  return item;
};
const search = (text) => {
  const wanted = text.trim().toLowerCase();
  state.found = [];
  if (wanted) for (let i = 0; i < n && state.found.length < MOST_FOUND; i++) if (data.ids[i].toLowerCase().includes(wanted)) state.found.push(i);
  const items = state.found.slice(0, MOST_LISTED).map(foundItem), rest = state.found.length - MOST_LISTED;
  if (wanted && !state.found.length) items.push(element("li", "no row has that in its name", "hint"));
  const more = state.found.length === MOST_FOUND ? " or more" : "";
  if (rest > 0) items.push(element("li", "and " + rest + more + (rest === 1 ? " other" : " others") + ", ringed", "hint"));
  $("found").replaceChildren(...items);
  remark();
};
$("search").addEventListener("input", (event) => search(event.target.value));
$("search").addEventListener("keydown", (event) => { if (event.key === "Enter" && state.found.length) goTo(state.found[0]); });
for (const button of document.querySelectorAll("[data-row]")) button.addEventListener("click", () => goTo(Number(button.dataset.row)));

// Files and the table -------------------------------------------------------------------
$("save-png").addEventListener("click", savePng);
$("save-svg").addEventListener("click", saveSvg);
$("save-rows").addEventListener("click", saveRows);
$("select-rows").addEventListener("click", () => setSelection(table.rows.slice()));
$("clear-rows").addEventListener("click", clearAll);
$("rows").addEventListener("scroll", () => requestAnimationFrame(showRows));

// Light, dark, print ------------------------------------------------------------------
const root = document.documentElement, dark = window.matchMedia("(prefers-color-scheme: dark)");
const useTheme = (theme) => {
  if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
  readTheme(); sprites = new Map(); stale = true;
};
const repaint = () => { useTheme(root.dataset.theme); showLegend(); redraw(); };
dark.addEventListener("change", repaint);
$("theme").addEventListener("click", () => {
  const now = root.dataset.theme || (dark.matches ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  repaint();
});
let themeBefore;
window.addEventListener("beforeprint", () => {
  themeBefore = root.dataset.theme;
  useTheme("light"); setScale(2); showLegend(); draw();
});
window.addEventListener("afterprint", () => {
  useTheme(themeBefore); showLegend(); resize();
});

readTheme(); groupRows(); chooseNames(); setMode("move"); showLegend();
press("density", state.density);
$("planes").classList.toggle("hidden", !data.layout);
showPlane(data.layout !== null);
$("rows-card").classList.remove("hidden");
buildTable();
new ResizeObserver(resize).observe(canvas);
resize();
