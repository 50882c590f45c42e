// The hand on the picture: pointers, wheel, fingers and keys, the legend, the search for a row, light
// and dark. A page that has it defines what a row shows, pairsOf(i, most) and showDetail(i), what is
// done with rows that are clicked, found or drawn round, keep(i), goTo(i), search(text) and
// setSelection(rows, added), and has the elements that are named here.

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

// Rows within a line ---------------------------------------------------------------
const isWithin = (path, x, y) => {
  let within = false;
  for (let a = 0, b = path.length - 1; a < path.length; b = a++) {
    const [ax, ay] = path[a], [bx, by] = path[b];
    if ((ay > y) !== (by > y) && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) within = !within;
  }
  return within;
};
const rowsWithin = (path) => {
  const xs = path.map((p) => p[0]), ys = path.map((p) => p[1]), rows = [];
  const left = Math.min(...xs), right = Math.max(...xs), top = Math.min(...ys), bottom = Math.max(...ys);
  for (let i = 0; i < n; i++) {
    const [x, y] = pointOf(i);
    if (x >= left && x <= right && y >= top && y <= bottom && isShown(i) && isWithin(path, x, y)) rows.push(i);
  }
  return rows;
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

// What dragging does ---------------------------------------------------------------
const press = (id, pressed) => $(id).setAttribute("aria-pressed", String(pressed));
const MODES = ["move", "box", "lasso"];
const setMode = (mode) => {
  state.mode = mode;
  for (const other of MODES) press(other, other === mode);
  canvas.classList.toggle("selecting", mode !== "move");
};
for (const mode of MODES) $(mode).addEventListener("click", () => setMode(mode));

// What the picture shows ---------------------------------------------------------------
const fill = (select, names, chosen) => {
  select.replaceChildren(...names.map((name, i) => { const o = element("option", name); o.value = String(i); return o; }));
  select.value = String(chosen);
};
const chooseNames = () => {
  const levels = columns[state.column].levels;
  state.names = levels !== null && levels.length <= MOST_NAMES;
  press("names", state.names);
};
for (const name of ["names", "ellipses", "arrows", "density"]) if ($(name)) $(name).addEventListener("click", () => {
  state[name] = !state[name];
  press(name, state[name]);
  redraw();
});

// Legend -------------------------------------------------------------------------
const noneName = data.none_name || "no value";   // what rows without a class are called
const groupSizes = () => {
  const counts = new Uint32Array(NONE + 1);
  for (let i = 0; i < n; i++) counts[group[i]]++;
  const sizes = new Map();
  for (let g = 0; g <= NONE; g++) if (counts[g]) sizes.set(g, counts[g]);
  return sizes;
};
const keyImage = (g) => {
  const image = document.createElement("canvas"), sharp = window.devicePixelRatio || 1;
  image.width = image.height = 16 * sharp;
  image.style.width = image.style.height = "16px";
  image.setAttribute("aria-hidden", "true");
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
  [...$("legend").querySelectorAll("button")].find((b) => b.title === (g === NONE ? noneName : columns[state.column].levels[g])).focus();
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
  if (sizes.has(NONE)) items.push([NONE, noneName, sizes.get(NONE)]);
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

// Search for a row -------------------------------------------------------------------
const MOST_FOUND = 500, MOST_LISTED = 12;
const foundItem = (i) => {
  const item = element("li"), button = element("button", data.ids[i]);
  button.type = "button"; button.title = data.ids[i];
  button.addEventListener("click", () => goTo(i));
  item.append(button);
  return item;
};
const rowsNamed = (text) => {
  const wanted = text.trim().toLowerCase(), rows = [];
  if (wanted) for (let i = 0; i < n && rows.length < MOST_FOUND; i++) if (data.ids[i].toLowerCase().includes(wanted)) rows.push(i);
  return rows;
};
const showFound = (text, more) => {
  const wanted = text.trim() !== "", items = state.found.slice(0, MOST_LISTED).map(foundItem), rest = state.found.length - MOST_LISTED;
  if (wanted && !state.found.length) items.push(element("li", "no row has that in its name", "hint"));
  const most = state.found.length >= MOST_FOUND ? " or more" : "";
  if (rest > 0) items.push(element("li", "and " + rest + most + (rest === 1 ? " other" : " others") + ", ringed", "hint"));
  $("found").replaceChildren(...items, ...(more || []));
  remark();
};
$("search").addEventListener("input", (event) => search(event.target.value));
$("search").addEventListener("keydown", (event) => { if (event.key === "Enter" && state.found.length) goTo(state.found[0]); });

// Light and dark ------------------------------------------------------------------
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
