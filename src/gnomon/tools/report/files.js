// Files: the rows of the table as csv, the picture as PNG and as SVG.
// Downloads -------------------------------------------------------------------
const download = (suffix, parts, type) => {
  const link = element("a"), url = URL.createObjectURL(new Blob(parts, { type }));
  link.href = url;
  link.download = (data.name.replace(/[\\/:*?"<>|\u0000-\u001f]+/g, "_") || "picture") + suffix;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
};
// As tables are written elsewhere: a text that a spreadsheet would run has a quote before it.
const FORMULA = /^[=+\-@\t\r]/, NUMBER = /^\s*[-+]?[0-9]+([.,][0-9]+)?(e[-+]?[0-9]+)?\s*$/i;
const csvCell = (text) => {
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? "'" + text : text;
  return /[",\r\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
};
const csvLine = (texts) => texts.map(csvCell).join(",") + "\n";

const saveRows = () => {
  const lines = [csvLine(fields.map((field) => field.name))];
  for (const i of table.rows) lines.push(csvLine(fields.map((field) => field.exact(i))));
  download("_rows.csv", lines, "text/csv;charset=utf-8");
};

// The picture as a file: the same drawing, by a pen that writes SVG or on a larger canvas -------
// What XML cannot hold: control characters, and halves of pairs that stand alone.
const NOT_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ud800-\udfff\ufffe\uffff]/gu;
const escapeXml = (text) => String(text).replace(NOT_XML, "").replace(/[&<>"']/g, (sign) => "&#" + sign.charCodeAt(0) + ";");
const round = (v) => String(Math.round(v * 100) / 100);
const degrees = (turn) => round((turn * 180) / Math.PI);
const attributes = (pairs) => Object.entries(pairs).map(([name, value]) => " " + name + '="' + escapeXml(value) + '"').join("");
const ANCHOR = { left: "start", center: "middle", right: "end" }, RISE = { top: 0.8, middle: 0.35, bottom: -0.2 };
class SvgPen {
  constructor() {
    Object.assign(this, { isVector: true, parts: [], stack: [], open: 0, clips: 0, transform: "", globalAlpha: 1, title: "" });
  }
  beginPath() { this.path = []; this.shape = null; this.made = null; }
  moveTo(x, y) { this.path.push("M" + round(x) + " " + round(y)); }
  lineTo(x, y) { this.path.push("L" + round(x) + " " + round(y)); }
  closePath() { this.path.push("Z"); }
  arc(x, y, r) { this.shape = ["circle", { cx: round(x), cy: round(y), r: round(r) }]; }
  ellipse(x, y, rx, ry, turn) {
    const transform = "rotate(" + degrees(turn) + " " + round(x) + " " + round(y) + ")";
    this.shape = ["ellipse", { cx: round(x), cy: round(y), rx: round(rx), ry: round(ry), transform }];
  }
  rect(x, y, width, height) { this.shape = ["rect", { x: round(x), y: round(y), width: round(width), height: round(height) }]; }
  // A path that is filled and then drawn round is one element.
  add(paint) {
    if (this.made === null) {
      const [tag, shape] = this.shape || ["path", { d: this.path.join("") }];
      this.made = { tag, pairs: { ...shape, fill: "none" }, title: this.title };
      this.parts.push(this.made);
    }
    Object.assign(this.made.pairs, paint);
  }
  fill() { this.add({ fill: this.fillStyle, ...this.faded("fill-opacity") }); }
  stroke() { this.add({ stroke: this.strokeStyle, "stroke-width": this.lineWidth, ...this.faded("stroke-opacity") }); }
  faded(name) { return this.globalAlpha < 1 ? { [name]: round(this.globalAlpha) } : {}; }
  fillRect(...box) { this.beginPath(); this.rect(...box); this.fill(); }
  text(text, x, y, paint) {
    const [, weight, size] = /^(600 )?(\d+)px/.exec(this.font);
    const place = { x: round(x), y: round(y + Number(size) * RISE[this.textBaseline]), "text-anchor": ANCHOR[this.textAlign] };
    const type = { "font-size": size, ...(weight ? { "font-weight": 600 } : {}), ...(this.transform ? { transform: this.transform } : {}) };
    this.parts.push({ tag: "text", pairs: { ...place, ...type, ...paint }, text });
  }
  fillText(text, x, y) { this.text(text, x, y, { fill: this.fillStyle }); }
  strokeText(text, x, y) {
    const line = { stroke: this.strokeStyle, "stroke-width": this.lineWidth, "stroke-linejoin": "round" };
    this.text(text, x, y, { fill: "none", ...line, ...this.faded("stroke-opacity") });
  }
  measureText(text) { screen.font = this.font; return screen.measureText(text); }
  drawImage(image, x, y, width, height) {
    const box = { x: round(x), y: round(y), width: round(width), height: round(height) };
    this.parts.push({ tag: "image", pairs: { href: image.toDataURL(), ...box, preserveAspectRatio: "none" } });
  }
  save() { this.stack.push([this.transform, this.open]); this.open = 0; }
  restore() {
    for (; this.open > 0; this.open--) this.parts.push("</g>");
    [this.transform, this.open] = this.stack.pop();
  }
  translate(x, y) { this.transform += "translate(" + round(x) + " " + round(y) + ")"; }
  rotate(turn) { this.transform += "rotate(" + degrees(turn) + ")"; }
  clip() {
    const id = "clip" + ++this.clips;
    this.parts.push('<clipPath id="' + id + '"><rect' + attributes(this.shape[1]) + '/></clipPath><g clip-path="url(#' + id + ')">');
    this.open++;
  }
  written(part) {
    if (typeof part === "string") return part;
    const inner = part.tag === "text" ? escapeXml(part.text) : part.title ? "<title>" + escapeXml(part.title) + "</title>" : "";
    return "<" + part.tag + attributes(part.pairs) + ">" + inner + "</" + part.tag + ">";
  }
  file(width, height) {
    const size = { width: round(width), height: round(height), viewBox: "0 0 " + round(width) + " " + round(height) };
    const type = { "font-family": "system-ui, Segoe UI, Roboto, Arial, sans-serif" };
    const head = '<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg"';
    return [head + attributes({ ...size, ...type }) + ">\n", ...this.parts.map((part) => this.written(part) + "\n"), "</svg>\n"];
  }
}
// Of the legend beside a saved picture: width of a column of names, height of a name.
const KEY_WIDTH = 190, KEY_ROW = 20;
const keysOf = () => {
  const levels = columns[state.column].levels, sizes = groupSizes();
  if (!levels) return [];
  const keys = levels.map((name, g) => [g, name]).filter(([g]) => sizes.has(g) && !state.hidden.has(g));
  return sizes.has(NONE) && !state.hidden.has(NONE) ? [...keys, [NONE, noneName]] : keys;
};
const keysInColumn = () => Math.max(1, Math.floor((state.height - 50) / KEY_ROW));
const keyWidth = () => KEY_WIDTH * Math.max(1, Math.ceil(keysOf().length / keysInColumn()));
const paintKeys = () => {
  const left = state.width + 8, column = columns[state.column];
  pen.font = "600 13px" + FONT.slice(4); pen.fillStyle = ink.text;
  write(short(column.name, 28), left, 24, "left", "middle");
  pen.font = FONT;
  if (!column.levels) return paintRamp(left);
  keysOf().forEach(([g, name], k) => {
    const x = left + KEY_WIDTH * Math.floor(k / keysInColumn()), y = 48 + KEY_ROW * (k % keysInColumn());
    drawMarker(pen, x + 6, y, 5, g, false);
    pen.fillStyle = ink.text;
    write(short(name, 26), x + 18, y, "left", "middle");
  });
};
const paintRamp = (left) => {
  const step = (KEY_WIDTH - 30) / STEPS;
  for (let k = 0; k < STEPS; k++) { pen.fillStyle = viridis((k + 0.5) / STEPS); pen.fillRect(left + k * step, 40, step + 0.4, 12); }
  pen.fillStyle = ink.text;
  write(format(columns[state.column].kind, range[0]), left, 66, "left", "middle");
  write(format(columns[state.column].kind, range[1]), left + KEY_WIDTH - 30, 66, "right", "middle");
};
// On white, whatever the page has; marks that follow the pointer are left out.
const paintFile = (other) => {
  const before = [pen, state.hover, document.documentElement.dataset.theme];
  pen = other; state.hover = -1;
  useTheme("light");
  pen.fillStyle = ink.plot;
  pen.fillRect(0, 0, state.width + keyWidth(), state.height);
  paintSheet(); clipped(drawMarks); paintKeys();
  [pen, state.hover] = before;
  useTheme(before[2]);
};
const saveSvg = () => {
  const other = new SvgPen();
  paintFile(other);
  download(".svg", other.file(state.width + keyWidth(), state.height), "image/svg+xml");
};
const FINE = 3;   // pixels of a saved picture for one of the page
const savePng = () => {
  const image = document.createElement("canvas"), other = image.getContext("2d"), before = scale;
  image.width = Math.round((state.width + keyWidth()) * FINE);
  image.height = Math.round(state.height * FINE);
  other.scale(FINE, FINE);
  scale = FINE;
  paintFile(other);
  scale = before; sprites = new Map();
  image.toBlob((blob) => download(".png", [blob], "image/png"), "image/png");
};
