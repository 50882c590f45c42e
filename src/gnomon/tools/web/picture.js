// The picture: what the page knows of the rows, how they look, and their drawing.
// Text from the data only ever becomes textContent, or escaped text of an SVG file, never markup.
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("payload").textContent);
const bytes = (text) => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text).buffer;
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out.buffer;
};
const floats = (text) => new Float32Array(bytes(text));
const n = data.n, q = data.q;
// The coordinates; where there is a layout of the rows, its two are q and q + 1.
const Z = [...data.z, ...(data.layout ? data.layout.places : [])].map(floats);
const covariance = data.covariance && { shared: data.covariance.shared, values: floats(data.covariance.values) };
const layoutSpread = data.layout && data.layout.covariance && floats(data.layout.covariance);
const labelled = data.labelled ? new Uint8Array(bytes(data.labelled)) : null;
let labelledCount = 0;
if (labelled) for (const given of labelled) labelledCount += given;
const columns = data.columns;
// Columns are unpacked when they are first looked at: a page may have thousands.
const ARRAYS = { classes: Uint16Array, number: Float32Array, date: Float64Array };
const valuesOf = (column) => column.unpacked || (column.unpacked = new ARRAYS[column.kind](bytes(column.values)));
const NONE = 65535;
// More points than LARGE are drawn as pixels, and while the picture is in motion more than QUICK, so
// that a frame is done in time; more ellipses than these hide each other.
const LARGE = 10000, QUICK = 3000, MOST_ELLIPSES = 2000;
// Up to this many classes have their names on the map unasked.
const MOST_NAMES = 30;
const VIRIDIS = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];

const canvas = $("canvas"), screen = canvas.getContext("2d");
// Everything but the marks is drawn on a sheet of its own, so that pointing at rows costs little.
const sheet = document.createElement("canvas"), sheetPen = sheet.getContext("2d");
let pen = sheetPen, scale = window.devicePixelRatio || 1;
const state = {
  across: data.layout ? q : 0, up: data.layout ? q + 1 : Math.min(1, q - 1), column: 0, hidden: new Set(), mode: "move",
  names: true, ellipses: false, arrows: false, density: n > LARGE,
  hover: -1, kept: -1, found: [], path: null, view: null, whole: true, moving: false, stirred: false, width: 0, height: 0,
};
const selection = { mask: new Uint8Array(n), count: 0 };
const margin = { left: 46, right: 12, top: 12, bottom: 36 };
const roomAcross = () => state.width - margin.left - margin.right;
const roomUp = () => state.height - margin.top - margin.bottom;

const isLayout = () => state.across >= q;
const hasSpread = () => Boolean(isLayout() ? layoutSpread : covariance);
const axisNames = data.axes.map((name) => name.replace(/ \(\d+% of the variance\)$/, ""));

// Values as text ------------------------------------------------------------
const element = (tag, text, className) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const GAP = "–";
const count = (number, one, many) => number.toLocaleString("en") + " " + (number === 1 ? one : many);
// Cut in the middle: what tells names apart is often their end.
const short = (text, most) => {
  if (text.length <= most) return text;
  const end = Math.floor(most / 3);
  return text.slice(0, most - end - 1) + "…" + text.slice(text.length - end);
};
const formatNumber = (v) => {
  if (v !== v) return GAP;
  const size = Math.abs(v);
  if (Number.isInteger(v) && size < 1e7) return String(v);
  return size >= 1e5 || (size < 1e-3 && size > 0) ? v.toExponential(3) : String(Number(v.toPrecision(5)));
};
const formatDate = (days) => {
  if (days !== days) return GAP;
  const time = new Date(Math.round(days * 1440) * 60000);
  if (isNaN(time)) return formatNumber(days);
  const text = time.toISOString().replace("T", " ");
  return Number.isInteger(days) ? text.slice(0, -14) : text.slice(0, -8);
};
const format = (kind, v) => (kind === "date" ? formatDate(v) : formatNumber(v));
const valueOf = (column, i) => {
  const v = valuesOf(column)[i];
  if (column.kind !== "classes") return format(column.kind, v);
  return v === NONE ? GAP : column.levels[v];
};

// Colours -------------------------------------------------------------------
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
let ink = {}, palette = data.palette.light;
const rgb = (colour) => {
  if (colour.startsWith("rgb")) return colour.slice(4, -1).split(",").map(Number);
  return [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16));
};
const mix = (a, b, t) => {
  const from = rgb(a), to = rgb(b);
  return "rgb(" + from.map((part, k) => Math.round(part * (1 - t) + to[k] * t)).join(",") + ")";
};
const luminance = (colour) => {
  const linear = rgb(colour).map((v) => (v <= 10 ? v / 3295 : Math.pow((v / 255 + 0.055) / 1.055, 2.4)));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const isDark = () => luminance(ink.plot) < 0.4;
const readTheme = () => {
  for (const name of ["text", "soft", "line", "grid", "none", "plot", "accent"]) ink[name] = css(name === "text" ? "--ink" : "--" + name);
  palette = data.palette[isDark() ? "dark" : "light"];
};
// Without the end that is lost on the plot: the darkest part on a dark one, the lightest on a light one.
const viridis = (t) => {
  const part = isDark() ? 0.2 + 0.8 * t : 0.95 * t;
  const x = Math.max(0, Math.min(1, part)) * (VIRIDIS.length - 1), i = Math.min(VIRIDIS.length - 2, Math.floor(x));
  return mix(VIRIDIS[i], VIRIDIS[i + 1], x - i);
};
const STEPS = 32;
let group = new Uint16Array(n);   // per row: the style it is drawn in; NONE for no value
let range = [0, 1];
const rangeOf = (values) => {
  let low = Infinity, high = -Infinity;
  for (const v of values) if (v === v) { if (v < low) low = v; if (v > high) high = v; }
  return [low, high];
};
const groupRows = () => {
  const column = columns[state.column], values = valuesOf(column);
  if (column.levels) { group = values; return; }
  range = rangeOf(values);
  group = new Uint16Array(n);
  const low = range[0], span = range[1] - low || 1;
  for (let i = 0; i < n; i++) {
    const v = values[i];
    group[i] = v === v ? Math.min(STEPS - 1, Math.floor(((v - low) / span) * STEPS)) : NONE;
  }
};
const colourOf = (g) => {
  if (g === NONE) return ink.none;
  return columns[state.column].levels ? palette[g % palette.length] : viridis((g + 0.5) / STEPS);
};
const shapeOf = (g) => (columns[state.column].levels && g !== NONE ? Math.floor(g / data.palette.plain) % (2 + POLYGONS.length) : 0);
const isOpen = (i) => labelled !== null && !labelled[i];
const isShown = (i) => !state.hidden.has(group[i]);
const isFaint = (i) => selection.count > 0 && !selection.mask[i];

// View ----------------------------------------------------------------------
const extent = (values) => {
  let [low, high] = rangeOf(values);
  if (!(high > low)) { low -= 1; high += 1; }
  const pad = (high - low) * 0.06;
  return [low - pad, high + pad];
};
const grown = ([a, b], factor) => { const m = (a + b) / 2, r = ((b - a) / 2) * factor; return [m - r, m + r]; };
const showAll = () => {
  let xs = extent(Z[state.across]), ys = extent(Z[state.up]);
  const sx = (xs[1] - xs[0]) / roomAcross(), sy = (ys[1] - ys[0]) / roomUp();
  // One unit is as long across as up, unless that would leave a strip.
  if (Math.max(sx, sy) < 4 * Math.min(sx, sy)) {
    if (sx < sy) xs = grown(xs, sy / sx); else ys = grown(ys, sx / sy);
  }
  state.view = { x0: xs[0], x1: xs[1], y0: ys[0], y1: ys[1] };
  state.whole = true;
};
const px = (x) => margin.left + ((x - state.view.x0) / (state.view.x1 - state.view.x0)) * roomAcross();
const py = (y) => state.height - margin.bottom - ((y - state.view.y0) / (state.view.y1 - state.view.y0)) * roomUp();
const pointOf = (i) => [px(Z[state.across][i]), py(Z[state.up][i])];
const inView = (i) => {
  const v = state.view, x = Z[state.across][i], y = Z[state.up][i];
  return x >= v.x0 && x <= v.x1 && y >= v.y0 && y <= v.y1;
};
// The picture is in motion until nothing has stirred it for a while.
let settling = 0;
const stir = () => {
  state.whole = false; state.stirred = true;
  clearTimeout(settling);
  settling = setTimeout(() => { state.stirred = false; redraw(); }, 150);
};
const isInMotion = () => state.moving || state.stirred;
const zoom = (factor, cx = state.width / 2, cy = state.height / 2) => {
  const v = state.view, fx = (cx - margin.left) / roomAcross(), fy = (state.height - margin.bottom - cy) / roomUp();
  const x = v.x0 + fx * (v.x1 - v.x0), y = v.y0 + fy * (v.y1 - v.y0);
  stir();
  state.view = { x0: x - (x - v.x0) * factor, x1: x + (v.x1 - x) * factor, y0: y - (y - v.y0) * factor, y1: y + (v.y1 - y) * factor };
  redraw();
};
const pan = (dx, dy) => {
  const v = state.view, ux = ((v.x1 - v.x0) * dx) / roomAcross(), uy = ((v.y1 - v.y0) * dy) / roomUp();
  stir();
  state.view = { x0: v.x0 - ux, x1: v.x1 - ux, y0: v.y0 + uy, y1: v.y1 + uy };
  redraw();
};

// Axes ----------------------------------------------------------------------
const line = (x0, y0, x1, y1) => { pen.beginPath(); pen.moveTo(x0, y0); pen.lineTo(x1, y1); pen.stroke(); };
const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
const write = (text, x, y, across, up) => { pen.textAlign = across; pen.textBaseline = up; pen.fillText(text, x, y); };
const ticks = (low, high, wanted) => {
  const rough = (high - low) / wanted, power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const list = [];
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) list.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return [list, Math.max(0, -Math.floor(Math.log10(step)))];
};
const drawGrid = () => {
  const v = state.view, bottom = state.height - margin.bottom;
  const [xs, xd] = ticks(v.x0, v.x1, Math.max(4, state.width / 110)), [ys, yd] = ticks(v.y0, v.y1, 6);
  pen.strokeStyle = ink.grid; pen.lineWidth = 1;
  for (const x of xs) line(px(x), margin.top, px(x), bottom);
  for (const y of ys) line(margin.left, py(y), state.width - margin.right, py(y));
  pen.fillStyle = ink.soft;
  for (const x of xs) write(x.toFixed(xd), px(x), bottom + 4, "center", "top");
  for (const y of ys) write(y.toFixed(yd), margin.left - 5, py(y), "right", "middle");
};
const drawAxes = () => {
  pen.font = FONT;
  if (isLayout()) {
    pen.fillStyle = ink.soft;
    write(state.width < 500 ? "near rows are alike" : "near rows are alike; other distances say nothing", state.width - margin.right, state.height - 3, "right", "bottom");
    return;
  }
  drawGrid();
  pen.fillStyle = ink.text;
  write(short(data.axes[state.across], 60), state.width - margin.right, state.height - 3, "right", "bottom");
  pen.save();
  pen.translate(11, margin.top); pen.rotate(-Math.PI / 2);
  write(short(data.axes[state.up], 60), 0, 0, "right", "middle");
  pen.restore();
};

// Points --------------------------------------------------------------------
// After circle and square: triangle, diamond, triangle upside down, plus, cross, star, as on the displays.
const corners = (radii, turn) => radii.map((r, k) => {
  const angle = turn + (k * 2 * Math.PI) / radii.length;
  return [r * Math.cos(angle), r * Math.sin(angle)];
});
const PLUS = [[-1, 3], [1, 3], [1, 1], [3, 1], [3, -1], [1, -1], [1, -3], [-1, -3], [-1, -1], [-3, -1], [-3, 1], [-1, 1]];
const POLYGONS = [
  corners([1.25, 1.25, 1.25], -Math.PI / 2), corners([1.25, 1.25, 1.25, 1.25], 0), corners([1.25, 1.25, 1.25], Math.PI / 2),
  PLUS.map(([x, y]) => [0.4 * x, 0.4 * y]), PLUS.map(([x, y]) => [0.28 * (x - y), 0.28 * (x + y)]),
  corners([1.4, 0.6, 1.4, 0.6, 1.4, 0.6, 1.4, 0.6, 1.4, 0.6], -Math.PI / 2),
];
const trace = (c, x, y, r, shape) => {
  c.beginPath();
  if (shape === 0) { c.arc(x, y, r, 0, 2 * Math.PI); return; }
  if (shape === 1) { c.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8); return; }
  POLYGONS[shape - 2].forEach(([dx, dy], k) => c[k ? "lineTo" : "moveTo"](x + r * dx, y + r * dy));
  c.closePath();
};
const drawMarker = (c, x, y, r, g, open) => {
  trace(c, x, y, r, shapeOf(g));
  if (open) { c.lineWidth = 1.6; c.strokeStyle = colourOf(g); c.stroke(); return; }
  c.fillStyle = colourOf(g); c.fill();
  c.lineWidth = 0.7; c.strokeStyle = ink.plot; c.stroke();
};
let sprites = new Map();
const sprite = (g, open, r) => {
  const key = (g * 2 + (open ? 1 : 0)) * 8 + r;
  if (!sprites.has(key)) {
    const size = Math.ceil(2 * (r * 1.4 + 2)), image = document.createElement("canvas");
    image.width = image.height = Math.round(size * scale);
    const c = image.getContext("2d");
    c.scale(scale, scale);
    drawMarker(c, size / 2, size / 2, r, g, open);
    sprites.set(key, [image, size]);
  }
  return sprites.get(key);
};
const stamp = (i, r) => {
  const [x, y] = pointOf(i);
  if (pen.isVector) { pen.title = data.ids[i]; drawMarker(pen, x, y, r, group[i], isOpen(i)); pen.title = ""; return; }
  const [image, size] = sprite(group[i], isOpen(i), r);
  pen.drawImage(image, x - size / 2, y - size / 2, size, size);
};
// Rows without a label lie below labelled ones, and those not selected below the selected.
const stampAll = (rows) => {
  const r = rows.length > 4000 ? 3 : rows.length > 800 ? 4 : 5;
  const layers = [[], [], [], []];
  for (const i of rows) layers[(isFaint(i) ? 0 : 2) + (isOpen(i) ? 0 : 1)].push(i);
  layers.forEach((layer, k) => {
    pen.globalAlpha = selection.count > 0 && k < 2 ? 0.12 : 1;
    for (const i of layer) stamp(i, r);
  });
  pen.globalAlpha = 1;
};
// The rows that are drawn, and those of them drawn as pixels, in buffers that every drawing takes again:
// there may be very many.
const inSight = new Uint32Array(n), below = new Uint32Array(n);
const rowsInView = () => {
  const { x0, x1, y0, y1 } = state.view, xs = Z[state.across], ys = Z[state.up], all = state.hidden.size === 0;
  let size = 0;
  for (let i = 0; i < n; i++) {
    const x = xs[i], y = ys[i];
    if (x >= x0 && x <= x1 && y >= y0 && y <= y1 && (all || isShown(i))) inSight[size++] = i;
  }
  return inSight.subarray(0, size);
};
const drawPoints = (rows, grid) => {
  if (rows.length <= (isInMotion() && !pen.isVector ? QUICK : LARGE)) return stampAll(rows);
  const few = labelled && labelledCount <= QUICK, chosen = selection.count > 0, mask = selection.mask;
  const above = [];
  let size = 0;
  for (let k = 0; k < rows.length; k++) {
    const i = rows[k];
    if ((few && labelled[i]) || (chosen && mask[i])) above.push(i);
    else if (!grid || isAlone(grid, i)) below[size++] = i;
  }
  drawDots(below.subarray(0, size));
  if (above.length <= QUICK) stampAll(above); else drawDots(above);
};

// Many points: pixels, in an order that mixes the classes, so that none covers another.
const gcd = (a, b) => (b ? gcd(b, a % b) : a);
const strideOf = (size) => {
  let stride = Math.max(1, Math.round(size * 0.618));
  while (gcd(stride, size) > 1) stride++;
  return stride;
};
// Their sheet and its pixels are kept from frame to frame: a fresh one for each costs more than the rows.
let dots = null;
const dotsOf = (w, h) => {
  if (dots === null || dots.layer.width !== w || dots.layer.height !== h) {
    const layer = document.createElement("canvas");
    layer.width = w; layer.height = h;
    const c = layer.getContext("2d"), image = c.createImageData(w, h);
    dots = { layer, c, image, words: new Uint32Array(image.data.buffer) };
  }
  dots.words.fill(0);
  return dots;
};
const drawDots = (rows) => {
  if (pen.isVector) { for (const i of rows) drawDot(i); return; }
  const w = Math.round(roomAcross() * scale), h = Math.round(roomUp() * scale);
  if (w < 1 || h < 1) return;
  const { layer, c, image, words } = dotsOf(w, h);
  dabAll(words, w, h, rows);
  c.putImageData(image, 0, 0);
  pen.drawImage(layer, margin.left, margin.top, roomAcross(), roomUp());
};
const drawDot = (i) => {
  const [x, y] = pointOf(i);
  pen.globalAlpha = isFaint(i) ? 0.1 : 0.6;
  trace(pen, x, y, isOpen(i) ? 0.8 : 1.2, 0);
  pen.fillStyle = colourOf(group[i]); pen.fill();
  pen.globalAlpha = 1;
};
// A pixel is one number, red in its lowest byte and how much it covers in its highest.
const shades = new Uint32Array(NONE + 1);
const shadeOf = (g) => {
  const [red, green, blue] = rgb(colourOf(g));
  return (1 << 24) | (blue << 16) | (green << 8) | red;
};
// One loop without calls: it runs for a hundred thousand rows in every frame. Where two rows lie on one
// pixel each has half of its colour.
const dabAll = (words, w, h, rows) => {
  const { x0, x1, y0, y1 } = state.view, xs = Z[state.across], ys = Z[state.up], ax = w / (x1 - x0), ay = h / (y1 - y0);
  // Fewer rows are drawn larger, as they are when they stand.
  const big = Math.round((rows.length > LARGE ? 2 : 5) * scale), small = Math.max(1, big - 1), chosen = selection.count > 0, mask = selection.mask;
  const total = rows.length, stride = strideOf(total || 1), HALF = 0x7f7f7f;
  shades.fill(0);
  for (let k = 0, at = 0; k < total; k++) {
    const i = rows[at], g = group[i], size = labelled !== null && !labelled[i] ? small : big, more = chosen && !mask[i] ? 16 : 130;
    at += stride;
    if (at >= total) at -= total;
    const shade = (shades[g] || (shades[g] = shadeOf(g))) & 0xffffff, half = (shade >> 1) & HALF;
    const left = ((xs[i] - x0) * ax + 0.5) | 0, top = (h - (ys[i] - y0) * ay + 0.5) | 0;
    const right = left + size < w ? left + size : w, bottom = top + size < h ? top + size : h;
    for (let r = top; r < bottom; r++) for (let p = r * w + left, end = r * w + right; p < end; p++) {
      const old = words[p], covers = (old >>> 24) + more;
      words[p] = (old === 0 ? shade : ((old >> 1) & HALF) + half) | ((covers < 255 ? covers : 255) << 24);
    }
  }
};

// Density: rows counted in cells, smoothed, each cell in the mean colour of its rows.
const CELL = 5, ALONE = 2;
const cellOf = (grid, i) => {
  const v = state.view;
  const column = Math.min(grid.w - 1, Math.floor(((Z[state.across][i] - v.x0) / (v.x1 - v.x0)) * grid.w));
  const row = Math.min(grid.h - 1, Math.floor(((v.y1 - Z[state.up][i]) / (v.y1 - v.y0)) * grid.h));
  return row * grid.w + column;
};
const isAlone = (grid, i) => grid.counts[cellOf(grid, i)] <= ALONE;
const gridOf = (rows) => {
  const w = Math.max(1, Math.ceil(roomAcross() / CELL)), h = Math.max(1, Math.ceil(roomUp() / CELL));
  const layers = [0, 1, 2, 3].map(() => new Float32Array(w * h)), grid = { w, h, layers }, colours = [];
  const v = state.view, xs = Z[state.across], ys = Z[state.up], ax = w / (v.x1 - v.x0), ay = h / (v.y1 - v.y0), [red, green, blue, weight] = layers;
  for (let k = 0; k < rows.length; k++) {
    const i = rows[k], g = group[i], colour = colours[g] || (colours[g] = rgb(colourOf(g)));
    const at = Math.min(h - 1, Math.floor((v.y1 - ys[i]) * ay)) * w + Math.min(w - 1, Math.floor((xs[i] - v.x0) * ax));
    red[at] += colour[0]; green[at] += colour[1]; blue[at] += colour[2]; weight[at] += 1;
  }
  grid.counts = layers[3].slice();
  for (let pass = 0; pass < 4; pass++) for (const layer of layers) { smooth(layer, w, h, 1, w); smooth(layer, h, w, w, 1); }
  return grid;
};
// Weights 1 2 1 along one direction, in place.
const smooth = (values, length, lines, step, next) => {
  for (let l = 0; l < lines; l++) {
    let before = values[l * next];
    for (let k = 0; k < length; k++) {
      const at = l * next + k * step, here = values[at], after = k + 1 < length ? values[at + step] : here;
      values[at] = (before + 2 * here + after) / 4;
      before = here;
    }
  }
};
const drawDensity = (grid) => {
  const { w, h, layers } = grid, image = document.createElement("canvas");
  image.width = w; image.height = h;
  const c = image.getContext("2d"), pixels = c.createImageData(w, h), d = pixels.data;
  const filled = layers[3].filter((v) => v > 0.05).sort(), peak = filled[Math.floor(filled.length * 0.98)] || 1;
  for (let at = 0; at < w * h; at++) {
    const weight = layers[3][at];
    if (weight < 0.05) continue;
    for (let k = 0; k < 3; k++) d[4 * at + k] = layers[k][at] / weight;
    d[4 * at + 3] = 220 * Math.pow(Math.min(1, weight / peak), 0.45) * (selection.count ? 0.35 : 1);
  }
  c.putImageData(pixels, 0, 0);
  pen.imageSmoothingEnabled = true;
  pen.drawImage(image, margin.left, margin.top, roomAcross(), roomUp());
};

// Uncertainty ---------------------------------------------------------------
const packed = (i, a, b) => {
  if (a >= q) return layoutSpread[3 * i + a + b - 2 * q];
  const [r, c] = a < b ? [a, b] : [b, a], width = (q * (q + 1)) / 2;
  return covariance.values[(covariance.shared ? 0 : i * width) + r * q - (r * (r - 1)) / 2 + (c - r)];
};
// The curve that holds half of the posterior: radius sqrt(2 ln 2) standard deviations.
const ellipse = (i, fill) => {
  const a = packed(i, state.across, state.across), b = packed(i, state.across, state.up), d = packed(i, state.up, state.up);
  const sx = px(1) - px(0), sy = py(1) - py(0), A = a * sx * sx, B = b * sx * sy, D = d * sy * sy;
  const mid = (A + D) / 2, gap = Math.hypot((A - D) / 2, B), r = Math.sqrt(2 * Math.LN2);
  pen.beginPath();
  pen.ellipse(...pointOf(i), r * Math.sqrt(mid + gap), r * Math.sqrt(Math.max(0, mid - gap)), Math.atan2(2 * B, A - D) / 2, 0, 2 * Math.PI);
  pen.globalAlpha = fill; pen.fillStyle = colourOf(group[i]); pen.fill();
  pen.globalAlpha = Math.min(1, fill * 4); pen.lineWidth = 1; pen.strokeStyle = colourOf(group[i]); pen.stroke();
  pen.globalAlpha = 1;
};
const drawEllipses = (rows) => {
  if (rows.length > MOST_ELLIPSES) {
    say("Zoom in until fewer than " + MOST_ELLIPSES + " rows are in view to see their uncertainty; a row you point at always shows its own.");
    return;
  }
  say("Each curve holds half of what the model believes about its row" + (isLayout() ? ", as this layout would place it." : "."));
  for (const i of rows) ellipse(i, (rows.length > 100 ? 0.04 : 0.1) * (isFaint(i) ? 0.2 : 1));
};

// Names on the map, none over another ----------------------------------------
let taken = [];
const isFree = (box) => taken.every((other) => box.x1 < other.x0 || box.x0 > other.x1 || box.y1 < other.y0 || box.y0 > other.y1);
const isInside = (box) => box.x0 >= margin.left && box.x1 <= state.width - margin.right && box.y0 >= margin.top && box.y1 <= state.height - margin.bottom;
const boxAt = (x, y, width) => ({ x, y, x0: x - width / 2 - 2, x1: x + width / 2 + 2, y0: y - 9, y1: y + 9 });
// The free place nearest to (x, y) for a text of this width, or null.
const freePlace = (x, y, width) => {
  for (let ring = 0; ring < 6; ring++) for (let k = 0; k < (ring ? 12 : 1); k++) {
    const angle = Math.PI / 2 + (k * Math.PI) / 6;
    const box = boxAt(x + ring * 18 * Math.cos(angle), y - ring * 12 * Math.sin(angle), width);
    if (isFree(box) && isInside(box)) { taken.push(box); return box; }
  }
  return null;
};
const writeWithHalo = (text, box, colour) => {
  pen.textAlign = "center"; pen.textBaseline = "middle"; pen.lineJoin = "round";
  pen.globalAlpha = 0.85; pen.lineWidth = 4; pen.strokeStyle = ink.plot; pen.strokeText(text, box.x, box.y);
  pen.globalAlpha = 1;
  pen.fillStyle = colour; pen.fillText(text, box.x, box.y);
};
const median = (values) => values.sort()[Math.floor(values.length / 2)];
let places = null;   // of each class: number, medians of its rows, how many; largest first
const findPlaces = () => {
  // Of very many rows some tell the middle as well.
  const rows = new Map(), stride = Math.ceil(n / 20000);
  for (let i = 0; i < n; i += stride) {
    if (!rows.has(group[i])) rows.set(group[i], []);
    rows.get(group[i]).push(i);
  }
  rows.delete(NONE);
  const middle = (values, own) => median(Float32Array.from(own, (i) => values[i]));
  places = [...rows].map(([g, own]) => ({ g, x: middle(Z[state.across], own), y: middle(Z[state.up], own), size: own.length }));
  places.sort((a, b) => b.size - a.size);
};
// Short names in larger letters, long or many ones in smaller; a narrow picture cuts them.
const nameStyle = (name) => {
  const most = state.width < 500 ? 14 : 24, size = places.length > 12 || state.width < 500 ? 12 : 14;
  pen.font = "600 " + (name.length <= 3 ? 16 : size) + "px" + FONT.slice(4);
  return short(name, most);
};
const drawNames = () => {
  if (places === null) findPlaces();
  const v = state.view;
  for (const { g, x, y, size } of places) {
    if (state.hidden.has(g) || x < v.x0 || x > v.x1 || y < v.y0 || y > v.y1) continue;
    const name = nameStyle(columns[state.column].levels[g]), above = size < 4 ? 18 : 0;
    // Above few rows, which it would hide.
    const box = freePlace(px(x), py(y) - above, pen.measureText(name).width);
    if (box === null) continue;
    if (Math.hypot(box.x - px(x), box.y - py(y)) > 20) { pen.lineWidth = 1; pen.strokeStyle = ink.soft; line(px(x), py(y), box.x, box.y); }
    writeWithHalo(name, box, mix(colourOf(g), ink.text, 0.55));
  }
};
const drawArrows = () => {
  const a = data.loadings.values[state.across], b = data.loadings.values[state.up], length = (j) => Math.hypot(a[j], b[j]);
  const top = a.map((_, j) => j).sort((s, t) => length(t) - length(s)).slice(0, 10);
  const cx = px(Math.max(state.view.x0, Math.min(state.view.x1, 0))), cy = py(Math.max(state.view.y0, Math.min(state.view.y1, 0)));
  const reach = (0.36 * Math.min(state.width, state.height)) / Math.max(1e-12, length(top[0]));
  pen.font = "600 12px" + FONT.slice(4);
  const tips = top.map((j) => ({ dx: a[j] * reach, dy: -b[j] * reach, name: short(data.loadings.names[j], 26) }));
  for (const { dx, dy } of tips) taken.push({ x0: cx + dx - 3, x1: cx + dx + 3, y0: cy + dy - 3, y1: cy + dy + 3 });
  for (const tip of tips) arrow(cx, cy, tip);
};
const arrow = (cx, cy, { dx, dy, name }) => {
  const x = cx + dx, y = cy + dy, width = pen.measureText(name).width;
  pen.strokeStyle = pen.fillStyle = ink.text; pen.lineWidth = 1.4;
  line(cx, cy, x, y);
  trace(pen, x, y, 2.5, 0); pen.fill();
  const box = freePlace(x + (dx < 0 ? -1 : 1) * (width / 2 + 7), y, width);
  if (box !== null) writeWithHalo(name, box, ink.text);
};

// Marks over the picture ------------------------------------------------------
const ring = (i, r, width) => {
  pen.beginPath();
  pen.arc(...pointOf(i), r, 0, 2 * Math.PI);
  pen.lineWidth = width; pen.strokeStyle = ink.text; pen.stroke();
};
const drawMarks = () => {
  for (const i of state.found) if (inView(i)) ring(i, 8, 1.4);
  for (const i of [state.kept, state.hover]) {
    if (i < 0 || !inView(i)) continue;
    if (hasSpread()) ellipse(i, 0.25);
    drawMarker(pen, ...pointOf(i), 5, group[i], isOpen(i));
    ring(i, 9, i === state.kept ? 2.4 : 1.4);
  }
  if (state.path) drawPath(state.path);
};
const drawPath = (path) => {
  pen.beginPath();
  path.forEach(([x, y], k) => pen[k ? "lineTo" : "moveTo"](x, y));
  pen.closePath();
  pen.fillStyle = pen.strokeStyle = ink.accent;
  pen.globalAlpha = 0.12; pen.fill();
  pen.globalAlpha = 1; pen.lineWidth = 1.5; pen.stroke();
};

// The whole -------------------------------------------------------------------
const clipped = (paint) => {
  pen.save();
  pen.beginPath();
  pen.rect(margin.left, margin.top, roomAcross(), roomUp());
  pen.clip();
  paint();
  pen.restore();
};
// While many rows move, their names wait: to find their places takes longer than a frame.
const hasNames = () => state.names && columns[state.column].levels !== null && !(state.moving && n > QUICK);
const paintRows = () => {
  const rows = rowsInView(), grid = state.density ? gridOf(rows) : null;
  taken = [];
  if (grid) drawDensity(grid);
  if (state.ellipses && hasSpread()) drawEllipses(rows);
  drawPoints(rows, grid);
  if (state.arrows && !isLayout()) drawArrows();
  if (hasNames()) drawNames();
};
const paintSheet = () => {
  pen.fillStyle = ink.plot;
  pen.fillRect(0, 0, state.width, state.height);
  say("");
  drawAxes();
  clipped(paintRows);
};
let waiting = false, stale = true, frames = 0;
const draw = () => {
  waiting = false;
  pen = sheetPen;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  if (stale) paintSheet();
  stale = false;
  pen = screen;
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.drawImage(sheet, 0, 0);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  clipped(drawMarks);
  canvas.dataset.frames = String(++frames);
};
const remark = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
const redraw = () => { stale = true; remark(); };
const say = (text) => { $("status").textContent = text; };
const setScale = (wanted) => {
  scale = wanted; sprites = new Map(); stale = true;
  canvas.width = sheet.width = Math.round(state.width * scale);
  canvas.height = sheet.height = Math.round(state.height * scale);
};
const resize = () => {
  const box = canvas.getBoundingClientRect();
  if (box.width === 0) return;
  const afresh = state.view === null || Math.abs(box.width / state.width - 1) > 0.2;
  state.width = box.width; state.height = box.height;
  setScale(window.devicePixelRatio || 1);
  if (afresh) showAll();
  draw();   // at once: a canvas of a new size is empty
};
