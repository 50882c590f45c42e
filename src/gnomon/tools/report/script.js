"use strict";
// The interactive picture. Text from the data only ever becomes textContent, never markup.
(() => {
  const data = JSON.parse(document.getElementById("payload").textContent);
  const $ = (id) => document.getElementById(id);
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const floats = (text) => new Float32Array(bytes(text));
  const n = data.n, q = data.q;
  const Z = data.z.map(floats);
  const covariance = data.covariance && { shared: data.covariance.shared, values: floats(data.covariance.values) };
  const labelled = data.labelled ? new Uint8Array(bytes(data.labelled)) : null;
  const columns = data.columns.map((c) => ({
    ...c, values: c.levels ? new Uint16Array(bytes(c.values)) : floats(c.values),
  }));
  const NONE = 65535;
  const LARGE = 20000, MOST_ELLIPSES = 2000;
  const ON_LIGHT = ["#3f90da", "#ffa90e", "#bd1f01", "#832db6", "#4f9e54", "#a96b59", "#e76300", "#92dadd", "#b9ac70", "#d96fb4"];
  const ON_DARK = ["#5aa6ee", "#ffb833", "#f0553a", "#b886e6", "#6cc072", "#c79281", "#ff8a3d", "#92dadd", "#cfc389", "#e78cc6"];
  let PALETTE = ON_LIGHT;
  const VIRIDIS = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
  const SHAPES = 4;

  const canvas = $("canvas"), context = canvas.getContext("2d");
  const state = {
    across: 0, up: Math.min(1, q - 1), column: data.colour, hidden: new Set(),
    ellipses: false, arrows: false, hover: -1, kept: -1, found: [], view: null, width: 0, height: 0,
  };
  const margin = { left: 46, right: 12, top: 12, bottom: 34 };

  // Colours ---------------------------------------------------------------
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let ink = {};
  const readTheme = () => {
    ink = { text: css("--ink"), soft: css("--soft"), line: css("--line"), grid: css("--grid"), none: css("--none"), plot: css("--plot") };
    PALETTE = parseInt(ink.plot.slice(1, 3), 16) < 128 ? ON_DARK : ON_LIGHT;
  };
  const mix = (a, b, t) => {
    const part = (hex, i) => parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
    return "rgb(" + [0, 1, 2].map((i) => Math.round(part(a, i) * (1 - t) + part(b, i) * t)).join(",") + ")";
  };
  const viridis = (t) => {
    const x = Math.max(0, Math.min(1, t)) * (VIRIDIS.length - 1), i = Math.min(VIRIDIS.length - 2, Math.floor(x));
    return mix(VIRIDIS[i], VIRIDIS[i + 1], x - i);
  };
  const STEPS = 32;
  let group = new Uint16Array(n);   // per row: the style it is drawn in; NONE for no value
  let range = [0, 1];
  const groupRows = () => {
    const column = columns[state.column];
    if (column.levels) { group = column.values; return; }
    let low = Infinity, high = -Infinity;
    for (const v of column.values) if (v === v) { if (v < low) low = v; if (v > high) high = v; }
    range = [low, high];
    group = new Uint16Array(n);
    const span = high - low || 1;
    for (let i = 0; i < n; i++) {
      const v = column.values[i];
      group[i] = v === v ? Math.min(STEPS - 1, Math.floor(((v - low) / span) * STEPS)) : NONE;
    }
  };
  const colourOf = (g) => {
    if (g === NONE) return ink.none;
    return columns[state.column].levels ? PALETTE[g % PALETTE.length] : viridis((g + 0.5) / STEPS);
  };
  const shapeOf = (g) => (columns[state.column].levels && g !== NONE ? Math.floor(g / PALETTE.length) % SHAPES : 0);
  const isOpen = (i) => labelled !== null && !labelled[i];
  const isShown = (i) => !state.hidden.has(group[i]);

  // View ------------------------------------------------------------------
  const extent = (values) => {
    let low = Infinity, high = -Infinity;
    for (const v of values) { if (v < low) low = v; if (v > high) high = v; }
    if (!(high > low)) { low -= 1; high += 1; }
    const pad = (high - low) * 0.06;
    return [low - pad, high + pad];
  };
  const showAll = () => {
    let [x0, x1] = extent(Z[state.across]), [y0, y1] = extent(Z[state.up]);
    const w = state.width - margin.left - margin.right, h = state.height - margin.top - margin.bottom;
    const sx = (x1 - x0) / w, sy = (y1 - y0) / h;
    // One unit is as long across as up, unless that would leave a strip.
    if (Math.max(sx, sy) < 4 * Math.min(sx, sy)) {
      const grow = (a, b, f) => { const m = (a + b) / 2, r = ((b - a) / 2) * f; return [m - r, m + r]; };
      if (sx < sy) [x0, x1] = grow(x0, x1, sy / sx); else [y0, y1] = grow(y0, y1, sx / sy);
    }
    state.view = { x0, x1, y0, y1 };
  };
  const px = (x) => margin.left + ((x - state.view.x0) / (state.view.x1 - state.view.x0)) * (state.width - margin.left - margin.right);
  const py = (y) => state.height - margin.bottom - ((y - state.view.y0) / (state.view.y1 - state.view.y0)) * (state.height - margin.top - margin.bottom);
  const zoom = (factor, cx, cy) => {
    const v = state.view;
    const fx = (cx - margin.left) / (state.width - margin.left - margin.right);
    const fy = (state.height - margin.bottom - cy) / (state.height - margin.top - margin.bottom);
    const x = v.x0 + fx * (v.x1 - v.x0), y = v.y0 + fy * (v.y1 - v.y0);
    state.view = { x0: x - (x - v.x0) * factor, x1: x + (v.x1 - x) * factor, y0: y - (y - v.y0) * factor, y1: y + (v.y1 - y) * factor };
    redraw();
  };
  const pan = (dx, dy) => {
    const v = state.view;
    const ux = ((v.x1 - v.x0) * dx) / (state.width - margin.left - margin.right);
    const uy = ((v.y1 - v.y0) * dy) / (state.height - margin.top - margin.bottom);
    state.view = { x0: v.x0 - ux, x1: v.x1 - ux, y0: v.y0 + uy, y1: v.y1 + uy };
    redraw();
  };

  // Drawing ---------------------------------------------------------------
  const trace = (c, x, y, r, shape) => {
    c.beginPath();
    if (shape === 0) c.arc(x, y, r, 0, 7);
    else if (shape === 1) c.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
    else {
      const corners = shape === 2 ? 3 : 4, turn = shape === 2 ? -Math.PI / 2 : 0;
      for (let k = 0; k < corners; k++) {
        const a = turn + (k * 2 * Math.PI) / corners;
        c[k ? "lineTo" : "moveTo"](x + 1.25 * r * Math.cos(a), y + 1.25 * r * Math.sin(a));
      }
      c.closePath();
    }
  };
  const drawMarker = (c, x, y, r, g, open) => {
    trace(c, x, y, r, shapeOf(g));
    if (open) { c.lineWidth = 1.6; c.strokeStyle = colourOf(g); c.stroke(); return; }
    c.fillStyle = colourOf(g); c.fill();
    c.lineWidth = 0.7; c.strokeStyle = ink.plot; c.stroke();
  };
  let sprites = new Map();
  const sprite = (g, open, r) => {
    const key = g * 2 + (open ? 1 : 0);
    if (!sprites.has(key)) {
      const size = Math.ceil(2 * (r * 1.3 + 2)), scale = window.devicePixelRatio || 1;
      const image = document.createElement("canvas");
      image.width = image.height = size * scale;
      const c = image.getContext("2d");
      c.scale(scale, scale);
      drawMarker(c, size / 2, size / 2, r, g, open);
      sprites.set(key, [image, size]);
    }
    return sprites.get(key);
  };
  const ticks = (low, high, count) => {
    const rough = (high - low) / count, power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    const list = [];
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) list.push(Math.abs(v) < step / 1e6 ? 0 : v);
    return [list, Math.max(0, -Math.floor(Math.log10(step)))];
  };
  const drawAxes = () => {
    const v = state.view, bottom = state.height - margin.bottom;
    context.font = "12px system-ui, sans-serif";
    context.lineWidth = 1;
    const [xs, xd] = ticks(v.x0, v.x1, Math.max(4, state.width / 110)), [ys, yd] = ticks(v.y0, v.y1, 6);
    context.strokeStyle = ink.grid;
    context.fillStyle = ink.soft;
    context.textAlign = "center"; context.textBaseline = "top";
    for (const x of xs) {
      line(px(x), margin.top, px(x), bottom);
      context.fillText(x.toFixed(xd), px(x), bottom + 4);
    }
    context.textAlign = "right"; context.textBaseline = "middle";
    for (const y of ys) {
      line(margin.left, py(y), state.width - margin.right, py(y));
      context.fillText(y.toFixed(yd), margin.left - 5, py(y));
    }
    context.fillStyle = ink.text;
    context.textAlign = "right"; context.textBaseline = "bottom";
    context.fillText(data.axes[state.across], state.width - margin.right, state.height - 2);
    context.save();
    context.translate(13, margin.top); context.rotate(-Math.PI / 2);
    context.textBaseline = "middle";
    context.fillText(data.axes[state.up], 0, 0);
    context.restore();
  };
  const line = (x0, y0, x1, y1) => {
    context.beginPath(); context.moveTo(x0, y0); context.lineTo(x1, y1); context.stroke();
  };
  const inView = (i) => {
    const v = state.view, x = Z[state.across][i], y = Z[state.up][i];
    return x >= v.x0 && x <= v.x1 && y >= v.y0 && y <= v.y1;
  };
  const packed = (i, a, b) => {
    const [r, c] = a < b ? [a, b] : [b, a], width = (q * (q + 1)) / 2;
    return covariance.values[(covariance.shared ? 0 : i * width) + r * q - (r * (r - 1)) / 2 + (c - r)];
  };
  // The curve that holds half of the posterior: radius sqrt(2 ln 2) standard deviations.
  const ellipse = (i, fill) => {
    const a = packed(i, state.across, state.across), b = packed(i, state.across, state.up), d = packed(i, state.up, state.up);
    const sx = px(1) - px(0), sy = py(1) - py(0);
    const A = a * sx * sx, B = b * sx * sy, D = d * sy * sy;
    const mid = (A + D) / 2, gap = Math.hypot((A - D) / 2, B), r = Math.sqrt(2 * Math.LN2);
    context.beginPath();
    context.ellipse(px(Z[state.across][i]), py(Z[state.up][i]), r * Math.sqrt(mid + gap), r * Math.sqrt(Math.max(0, mid - gap)), Math.atan2(2 * B, A - D) / 2, 0, 7);
    context.globalAlpha = fill; context.fillStyle = colourOf(group[i]); context.fill();
    context.globalAlpha = Math.min(1, fill * 4); context.lineWidth = 1; context.strokeStyle = colourOf(group[i]); context.stroke();
    context.globalAlpha = 1;
  };
  const drawPoints = () => {
    const x = Z[state.across], y = Z[state.up];
    if (n > LARGE) return drawDots(x, y);
    const r = n > 4000 ? 3 : n > 800 ? 4 : 5;
    for (const open of [true, false]) for (let i = 0; i < n; i++) {
      if (isOpen(i) !== open || !isShown(i) || !inView(i)) continue;
      const [image, size] = sprite(group[i], open, r);
      context.drawImage(image, px(x[i]) - size / 2, py(y[i]) - size / 2, size, size);
    }
  };
  // Many points: pixels, in an order that mixes the classes, so that none covers another.
  const gcd = (a, b) => (b ? gcd(b, a % b) : a);
  let stride = Math.max(1, Math.round(n * 0.618));
  while (gcd(stride, n) > 1) stride++;
  const layer = document.createElement("canvas");
  const rgbOf = (g) => {
    const colour = colourOf(g);
    if (colour.startsWith("rgb")) return colour.slice(4, -1).split(",").map(Number);
    return [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
  };
  const drawDots = (x, y) => {
    const scale = window.devicePixelRatio || 1, v = state.view;
    const across = state.width - margin.left - margin.right, high = state.height - margin.top - margin.bottom;
    const w = layer.width = Math.round(across * scale), h = layer.height = Math.round(high * scale);
    const c = layer.getContext("2d"), image = c.createImageData(w, h), d = image.data;
    const ax = w / (v.x1 - v.x0), ay = h / (v.y1 - v.y0), colours = new Map(), big = Math.round(2 * scale);
    for (let k = 0, i = 0; k < n; k++, i = (i + stride) % n) {
      const g = group[i];
      if (x[i] < v.x0 || x[i] > v.x1 || y[i] < v.y0 || y[i] > v.y1 || state.hidden.has(g)) continue;
      if (!colours.has(g)) colours.set(g, rgbOf(g));
      const [red, green, blue] = colours.get(g), size = isOpen(i) ? Math.max(1, big - 1) : big;
      const left = Math.round((x[i] - v.x0) * ax), top = Math.round(h - (y[i] - v.y0) * ay);
      for (let r = top; r < Math.min(h, top + size); r++) for (let s = left; s < Math.min(w, left + size); s++) {
        const at = 4 * (r * w + s), old = d[at + 3] ? 0.4 : 0;
        d[at] = old * d[at] + (1 - old) * red;
        d[at + 1] = old * d[at + 1] + (1 - old) * green;
        d[at + 2] = old * d[at + 2] + (1 - old) * blue;
        d[at + 3] = Math.min(255, d[at + 3] + 130);
      }
    }
    c.putImageData(image, 0, 0);
    context.drawImage(layer, margin.left, margin.top, across, high);
  };
  const drawEllipses = () => {
    if (!state.ellipses || !covariance) return;
    const rows = [];
    for (let i = 0; i < n && rows.length <= MOST_ELLIPSES; i++) if (isShown(i) && inView(i)) rows.push(i);
    say(rows.length > MOST_ELLIPSES ? "Zoom in until fewer than " + MOST_ELLIPSES + " rows are in view to see their uncertainty; a row you point at always shows its own." : "Each curve holds half of what the model believes about its row.");
    if (rows.length <= MOST_ELLIPSES) for (const i of rows) ellipse(i, rows.length > 100 ? 0.04 : 0.1);
  };
  const drawArrows = () => {
    if (!state.arrows || !data.loadings) return;
    const a = data.loadings.values[state.across], b = data.loadings.values[state.up];
    const rows = a.map((_, j) => j).sort((s, t) => Math.hypot(a[t], b[t]) - Math.hypot(a[s], b[s])).slice(0, 10);
    const cx = px(Math.max(state.view.x0, Math.min(state.view.x1, 0))), cy = py(Math.max(state.view.y0, Math.min(state.view.y1, 0)));
    const reach = 0.36 * Math.min(state.width, state.height) / Math.max(1e-12, Math.hypot(a[rows[0]], b[rows[0]]));
    context.font = "600 12px system-ui, sans-serif"; context.textBaseline = "middle";
    for (const j of rows) {
      const x = cx + a[j] * reach, y = cy - b[j] * reach;
      context.strokeStyle = context.fillStyle = ink.text; context.lineWidth = 1.4;
      line(cx, cy, x, y);
      trace(context, x, y, 2.5, 0); context.fill();
      context.textAlign = x < cx ? "right" : "left";
      const name = data.loadings.names[j], label = name.length > 26 ? name.slice(0, 25) + "…" : name;
      context.lineWidth = 3; context.strokeStyle = ink.plot;
      context.strokeText(label, x + (x < cx ? -6 : 6), y); context.fillText(label, x + (x < cx ? -6 : 6), y);
    }
  };
  const ring = (i, r, width) => {
    context.beginPath();
    context.arc(px(Z[state.across][i]), py(Z[state.up][i]), r, 0, 7);
    context.lineWidth = width; context.strokeStyle = ink.text; context.stroke();
  };
  const drawMarks = () => {
    for (const i of state.found) if (inView(i)) ring(i, 8, 1.4);
    for (const i of [state.kept, state.hover]) {
      if (i < 0 || !inView(i)) continue;
      if (covariance) ellipse(i, 0.25);
      drawMarker(context, px(Z[state.across][i]), py(Z[state.up][i]), 5, group[i], isOpen(i));
      ring(i, 9, i === state.kept ? 2.4 : 1.4);
    }
  };
  let waiting = false, frames = 0;
  const draw = () => {
    waiting = false;
    const scale = window.devicePixelRatio || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = ink.plot;
    context.fillRect(0, 0, state.width, state.height);
    say("");
    drawAxes();
    context.save();
    context.beginPath();
    context.rect(margin.left, margin.top, state.width - margin.left - margin.right, state.height - margin.top - margin.bottom);
    context.clip();
    drawEllipses(); drawPoints(); drawArrows(); drawMarks();
    context.restore();
    canvas.dataset.frames = String(++frames);
  };
  const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  const say = (text) => { $("status").textContent = text; };
  const resize = () => {
    const box = canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
    if (box.width === 0) return;
    const first = state.view === null || Math.abs(box.width / state.width - 1) > 0.2;
    state.width = box.width; state.height = box.height;
    canvas.width = Math.round(box.width * scale); canvas.height = Math.round(box.height * scale);
    sprites = new Map();
    if (first) showAll();
    redraw();
  };

  // Rows under the pointer --------------------------------------------------
  const nearest = (cx, cy, reach) => {
    let best = -1, least = reach * reach;
    const x = Z[state.across], y = Z[state.up], v = state.view;
    const ax = (state.width - margin.left - margin.right) / (v.x1 - v.x0), ay = (state.height - margin.top - margin.bottom) / (v.y1 - v.y0);
    const ux = v.x0 + (cx - margin.left) / ax, uy = v.y0 + (state.height - margin.bottom - cy) / ay;
    for (let i = 0; i < n; i++) {
      const dx = (x[i] - ux) * ax, dy = (y[i] - uy) * ay, far = dx * dx + dy * dy;
      if (far < least && isShown(i)) { least = far; best = i; }
    }
    return best;
  };
  const format = (v) => (v !== v ? "–" : Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(3) : String(Number(v.toPrecision(5))));
  const valueOf = (column, i) => {
    const v = column.values[i];
    return column.levels ? (v === NONE ? "–" : column.levels[v]) : format(v);
  };
  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const pairs = (i) => {
    const list = columns.map((column) => [column.name, valueOf(column, i)]);
    if (labelled) list.unshift(["label", labelled[i] ? "given" : "none, predicted"]);
    for (let j = 0; j < q; j++) {
      const sd = covariance ? " ± " + format(Math.sqrt(packed(i, j, j))) : "";
      list.push([data.axes[j], format(Z[j][i]) + sd]);
    }
    return list;
  };
  const showDetail = (i) => {
    const box = $("detail"), list = element("dl");
    for (const [name, value] of pairs(i)) list.append(element("dt", name), element("dd", value));
    box.replaceChildren(element("b", data.ids[i]), list);
  };
  const showTip = (i) => {
    const tip = $("tip");
    if (i < 0) { tip.classList.add("hidden"); return; }
    const lines = [element("b", data.ids[i])];
    for (const [name, value] of pairs(i).slice(0, labelled ? 4 : 3)) lines.push(element("div", name + ": " + value));
    tip.replaceChildren(...lines);
    tip.classList.remove("hidden");
    const x = px(Z[state.across][i]), y = py(Z[state.up][i]);
    tip.dataset.x = String(x); tip.dataset.y = String(y);
    tip.style.left = Math.max(4, Math.min(state.width - tip.offsetWidth - 4, x + 14)) + "px";
    tip.style.top = Math.max(4, Math.min(state.height - tip.offsetHeight - 4, y + 14)) + "px";
  };
  const hover = (i) => {
    if (i === state.hover) return;
    state.hover = i;
    showTip(i);
    if (i >= 0 && state.kept < 0) showDetail(i);
    redraw();
  };
  const keep = (i) => {
    state.kept = i;
    if (i >= 0) showDetail(i);
    redraw();
  };
  const goTo = (i) => {
    if (!inView(i)) showAll();
    state.hidden.delete(group[i]);
    showLegend();
    keep(i);
    state.hover = -1; hover(i);
    $("embedding").scrollIntoView({ block: "start" });
  };

  // Pointers ----------------------------------------------------------------
  const pointers = new Map();
  let moved = 0, spread = 0;
  const place = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, place(event));
    moved = 0; spread = 0;
    if (event.pointerType === "mouse") canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event), before = pointers.get(event.pointerId);
    if (!before) { hover(nearest(x, y, 22)); return; }
    pointers.set(event.pointerId, [x, y]);
    moved += Math.hypot(x - before[0], y - before[1]);
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()], now = Math.hypot(a[0] - b[0], a[1] - b[1]);
      if (spread > 0 && now > 0) zoom(spread / now, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
      spread = now;
    } else if (moved > 3) { hover(-1); pan(x - before[0], y - before[1]); }
  });
  const up = (event) => {
    if (pointers.delete(event.pointerId) && event.type === "pointerup" && moved <= 3) {
      const i = nearest(...place(event), 26);
      hover(i); keep(i);
    }
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => hover(-1));
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(event.deltaY * 0.0015), ...place(event)); }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoom(0.5, ...place(event)));
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
    if (moves[event.key]) { event.preventDefault(); pan(...moves[event.key]); }
    if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 0.8 : 1.25, state.width / 2, state.height / 2);
    if (event.key === "0") { showAll(); redraw(); }
    if (event.key === "Escape") { keep(-1); hover(-1); }
  });
  $("closer").addEventListener("click", () => zoom(0.7, state.width / 2, state.height / 2));
  $("farther").addEventListener("click", () => zoom(1 / 0.7, state.width / 2, state.height / 2));
  $("reset").addEventListener("click", () => { showAll(); redraw(); });

  // Controls ----------------------------------------------------------------
  const counts = () => {
    const count = new Map();
    for (const g of group) count.set(g, (count.get(g) || 0) + 1);
    return count;
  };
  const entry = (g, name, count) => {
    const button = element("button"), key = document.createElement("canvas"), scale = window.devicePixelRatio || 1;
    key.width = key.height = 16 * scale;
    const c = key.getContext("2d");
    c.scale(scale, scale);
    drawMarker(c, 8, 8, 5, g, false);
    key.style.width = key.style.height = "16px";
    button.type = "button"; button.title = name;
    button.setAttribute("aria-pressed", String(!state.hidden.has(g)));
    button.append(key, element("span", name, "name"), element("span", String(count), "count"));
    button.addEventListener("click", () => toggle(g));
    const item = element("li");
    item.append(button);
    return item;
  };
  const toggle = (g) => {
    if (state.hidden.has(g)) state.hidden.delete(g); else state.hidden.add(g);
    hover(-1);
    showLegend(); redraw();
  };
  const showLegend = () => {
    const column = columns[state.column], count = counts();
    $("legend-title").textContent = column.name;
    $("legend").classList.toggle("hidden", !column.levels);
    $("scale").classList.toggle("hidden", Boolean(column.levels));
    if (column.levels) {
      const items = column.levels.map((name, g) => [g, name, count.get(g) || 0]);
      if (count.has(NONE)) items.push([NONE, "no value", count.get(NONE)]);
      $("legend").replaceChildren(...items.map((item) => entry(...item)));
    } else {
      const c = $("ramp").getContext("2d");
      for (let i = 0; i < 256; i++) { c.fillStyle = viridis(i / 255); c.fillRect(i, 0, 1, 1); }
      $("low").textContent = format(range[0]); $("high").textContent = format(range[1]);
    }
  };
  const fill = (select, names, chosen) => {
    select.replaceChildren(...names.map((name, i) => { const o = element("option", name); o.value = String(i); return o; }));
    select.value = String(chosen);
  };
  fill($("across"), data.axes, state.across);
  fill($("up"), data.axes, state.up);
  fill($("colour"), columns.map((c) => c.name), state.column);
  for (const side of ["across", "up"]) $(side).addEventListener("change", (event) => { state[side] = Number(event.target.value); hover(-1); showAll(); redraw(); });
  const recolour = (i) => {
    state.column = i; state.hidden.clear(); sprites = new Map();
    groupRows(); showLegend(); redraw();
  };
  $("colour").addEventListener("change", (event) => recolour(Number(event.target.value)));
  for (const name of ["ellipses", "arrows"]) $(name).addEventListener("click", (event) => {
    state[name] = !state[name];
    event.currentTarget.setAttribute("aria-pressed", String(state[name]));
    redraw();
  });
  $("ellipses").classList.toggle("hidden", !covariance);
  $("arrows").classList.toggle("hidden", !data.loadings);
  const search = (text) => {
    const wanted = text.trim().toLowerCase();
    state.found = [];
    if (wanted) for (let i = 0; i < n && state.found.length < 500; i++) if (data.ids[i].toLowerCase().includes(wanted)) state.found.push(i);
    const buttons = state.found.slice(0, 12).map((i) => {
      const item = element("li"), button = element("button", data.ids[i]);
      button.type = "button"; button.title = data.ids[i];
      button.addEventListener("click", () => goTo(i));
      item.append(button);
      return item;
    });
    if (wanted && !state.found.length) buttons.push(element("li", "no row has that in its name", "hint"));
    if (state.found.length > 12) buttons.push(element("li", "and " + (state.found.length - 12) + (state.found.length === 500 ? " or more" : "") + " others, ringed", "hint"));
    $("found").replaceChildren(...buttons);
    redraw();
  };
  $("search").addEventListener("input", (event) => search(event.target.value));
  $("search").addEventListener("keydown", (event) => { if (event.key === "Enter" && state.found.length) goTo(state.found[0]); });
  for (const button of document.querySelectorAll("[data-row]")) button.addEventListener("click", () => goTo(Number(button.dataset.row)));

  // Light, dark, print ------------------------------------------------------
  const repaint = () => { readTheme(); sprites = new Map(); showLegend(); redraw(); };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", repaint);
  $("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
    repaint();
  });
  const whilePrinting = (theme) => {
    const root = document.documentElement;
    if (theme) { root.dataset.before = root.dataset.theme || ""; root.dataset.theme = theme; }
    else if (root.dataset.before) root.dataset.theme = root.dataset.before;
    else delete root.dataset.theme;
    readTheme(); sprites = new Map(); draw();
  };
  window.addEventListener("beforeprint", () => whilePrinting("light"));
  window.addEventListener("afterprint", () => whilePrinting(null));

  readTheme(); groupRows(); showLegend();
  new ResizeObserver(resize).observe(canvas);
  resize();
})();
