// The rows: their table, which of them it shows, and which are selected.

// Fields: a column of the table with its text and the number to sort it by -------
const exactText = (kind, v) => (v !== v ? "" : kind === "date" ? formatDate(v) : String(Number(v.toPrecision(7))));
const columnField = (column, known = () => true, name = column.name) => ({
  name, column, kind: column.kind, levels: column.levels,
  key: (i) => { const v = valuesOf(column)[i]; return !known(i) || (column.levels && v === NONE) ? NaN : v; },
  text: (i) => (known(i) ? valueOf(column, i) : GAP),
  exact: (i) => {
    const v = valuesOf(column)[i];
    if (!known(i)) return "";
    return column.levels ? (v === NONE ? "" : column.levels[v]) : exactText(column.kind, v);
  },
});
const axisField = (name, j) => ({
  name, kind: "number", levels: null, key: (i) => Z[j][i],
  text: (i) => formatNumber(Z[j][i]), exact: (i) => exactText("number", Z[j][i]),
});
const layoutNames = data.layout ? ["layout 1", "layout 2"] : [];
let ranks = null;   // of the rows by their names, numbers in them as numbers
const rankOf = (i) => {
  if (ranks === null) {
    const order = Uint32Array.from(data.ids, (_, k) => k), { compare } = new Intl.Collator("en", { numeric: true });
    order.sort((a, b) => compare(data.ids[a], data.ids[b]));
    ranks = new Uint32Array(n);
    order.forEach((row, place) => { ranks[row] = place; });
  }
  return ranks[i];
};
const nameField = { name: data.row_name, kind: "name", levels: null, key: rankOf, text: (i) => data.ids[i], exact: (i) => data.ids[i] };
// Where there are predictions, what was given has a field of its own beside them.
const targetFields = () => {
  const own = columns.slice(0, data.own).filter((column) => !axisNames.includes(column.name)).map((c) => columnField(c));
  if (data.predicted) own[0] = columnField(columns[0], (i) => labelled[i] === 1, columns[0].name + ", given");
  return own;
};
const fields = [nameField, ...targetFields(), ...axisNames.map(axisField), ...layoutNames.map((name, j) => axisField(name, q + j)), ...columns.slice(data.own).map((c) => columnField(c))];
fields.forEach((field, at) => { field.at = at; });
// More columns than this are too many to scroll through; the one that gives the colours is there.
const MOST_FIELDS = 30;
const shownFields = () => {
  const few = fields.slice(0, MOST_FIELDS), chosen = fields.find((field) => field.column === columns[state.column]);
  return !chosen || few.includes(chosen) ? few : [few[0], chosen, ...few.slice(1)];
};

// Filters -----------------------------------------------------------------------
const DATE = /^\d{4}-\d\d-\d\d/;
const readNumber = (text) => {
  const trimmed = text.trim();
  if (DATE.test(trimmed)) return Date.parse(trimmed.replace(" ", "T") + (trimmed.length > 10 ? "Z" : "")) / 86400000;
  return trimmed === "" ? NaN : Number(trimmed);
};
const COMPARE = { "<": (v, w) => v < w, "<=": (v, w) => v <= w, ">": (v, w) => v > w, ">=": (v, w) => v >= w, "=": (v, w) => v === w };
// A test of a row's number for "> 3", "2..5" or "= 7"; null for any other text.
const numberTest = (field, text) => {
  const span = text.split("..");
  if (span.length === 2) {
    const [low, high] = span.map(readNumber);
    return isNaN(low) || isNaN(high) ? null : (i) => field.key(i) >= low && field.key(i) <= high;
  }
  const parts = /^(<=|>=|<|>|=)(.+)$/.exec(text), wanted = parts && readNumber(parts[2]);
  if (!parts || isNaN(wanted)) return null;
  // As precisely as it is stored: what was 0.1 in the table is = 0.1.
  const exact = field.kind === "date" ? field.key : (i) => Number(field.key(i).toPrecision(7));
  return (i) => COMPARE[parts[1]](exact(i), wanted);
};
const textTest = (field, text) => {
  const wanted = text.toLowerCase(), has = (value) => value.toLowerCase().includes(wanted);
  if (!field.levels) return (i) => has(field.text(i));
  const fits = field.levels.map(has);
  return (i) => { const level = field.key(i); return level === level && fits[level]; };
};
const makeTest = (field, text) => {
  const numeric = field.kind === "number" || field.kind === "date";
  return (numeric && numberTest(field, text.trim())) || textTest(field, text.trim());
};

// The table ------------------------------------------------------------------------
const ROW = 30, SPARE = 6;   // height of a row as in the style; rows drawn beyond the visible ones
const table = { fields: [], filters: new Map(), sort: null, down: false, rows: [], first: -1 };
const findRows = () => {
  const tests = table.fields.filter((f) => table.filters.get(f.at)).map((f) => makeTest(f, table.filters.get(f.at)));
  const rows = [];
  for (let i = 0; i < n; i++) if (!isFaint(i) && tests.every((test) => test(i))) rows.push(i);
  return sorted(rows);
};
// Gaps come last, whichever way the rest is sorted.
const sorted = (rows) => {
  const field = table.fields.find((f) => f.at === table.sort);
  if (!field) return rows;
  const keys = new Float64Array(n), sign = table.down ? -1 : 1;
  for (const i of rows) keys[i] = field.key(i);
  return rows.sort((a, b) => {
    const x = keys[a], y = keys[b];
    if (x !== x || y !== y) return (x !== x) - (y !== y) || a - b;
    return sign * (x - y) || a - b;
  });
};
const refreshRows = () => {
  table.rows = findRows();
  table.first = -1;
  sayRows();
  showRows();
};
const sayRows = () => {
  const total = n.toLocaleString("en"), found = table.rows.length, chosen = selection.count;
  const part = found.toLocaleString("en") + " of " + (chosen ? chosen.toLocaleString("en") + " selected rows shown" : total + " rows shown");
  const whole = chosen ? chosen.toLocaleString("en") + " of " + total + " rows selected" : count(n, "row", "rows");
  $("rows-count").textContent = found === (chosen || n) ? whole : part;
  $("save-rows").textContent = "Save " + count(found, "row", "rows") + " (csv)";
  $("save-rows").disabled = found === 0;
  $("select-rows").disabled = found === 0 || found === (chosen || n);
  $("clear-rows").disabled = chosen === 0 && ![...table.filters.values()].some(Boolean);
};
const headerCell = (field) => {
  const cell = element("th"), button = element("button", field.name), sorts = table.sort === field.at;
  button.type = "button"; button.title = "Sort by " + field.name;
  cell.scope = "col"; cell.className = field.kind;
  cell.setAttribute("aria-sort", sorts ? (table.down ? "descending" : "ascending") : "none");
  button.addEventListener("click", () => sortBy(field));
  cell.append(button);
  return cell;
};
const filterCell = (field) => {
  const cell = element("td"), box = element("input"), numeric = field.kind === "number" || field.kind === "date";
  box.type = "search"; box.autocomplete = "off";
  box.placeholder = field.kind === "date" ? ">2024-05-01" : numeric ? ">2, 1..3" : "contains";
  box.setAttribute("aria-label", "Filter " + field.name);
  box.value = table.filters.get(field.at) || "";
  box.addEventListener("input", () => { table.filters.set(field.at, box.value); $("rows").scrollTop = 0; refreshRows(); });
  cell.append(box);
  return cell;
};
const WIDTHS = { name: 190, classes: 150, number: 118, date: 140 };
const buildTable = () => {
  table.fields = shownFields();
  for (const at of table.filters.keys()) if (!table.fields.includes(fields[at])) table.filters.delete(at);
  const head = element("tr"), filters = element("tr", undefined, "filters");
  head.append(...table.fields.map(headerCell));
  filters.append(...table.fields.map(filterCell));
  $("rows-head").replaceChildren(head, filters);
  const widths = table.fields.map((field) => WIDTHS[field.kind]);
  $("rows-columns").replaceChildren(...widths.map((width) => { const col = element("col"); col.style.width = width + "px"; return col; }));
  $("rows-table").style.width = widths.reduce((a, b) => a + b, 0) + "px";
  sayColumns();
  refreshRows();
};
const sayColumns = () => {
  const more = fields.length - table.fields.length, parts = [];
  if (more > 0) parts.push(count(more, "column more is", "columns more are") + " in the csv; colour by one to see it here.");
  const out = data.columns_left_out;
  if (out) parts.push(count(out, "column of the table is", "columns of the table are") + " not in this page, to keep it small.");
  $("rows-hint").textContent = parts.join(" ");
};
const sortBy = (field) => {
  table.down = table.sort === field.at && !table.down;
  table.sort = field.at;
  const cells = table.fields.map(headerCell);
  $("rows-head").firstChild.replaceChildren(...cells);
  cells[table.fields.indexOf(field)].firstChild.focus();
  $("rows").scrollTop = 0;
  refreshRows();
};
const spacer = (height) => {
  const row = element("tr", undefined, "spacer");
  row.style.height = height + "px";
  row.setAttribute("aria-hidden", "true");
  return row;
};
const bodyRow = (place) => {
  const i = table.rows[place], row = element("tr");
  row.setAttribute("aria-rowindex", String(place + 3));
  if (i === state.kept) { row.className = "kept"; row.setAttribute("aria-current", "true"); }
  row.append(...table.fields.map((field) => bodyCell(field, i)));
  row.addEventListener("click", () => markRow(i));
  return row;
};
const bodyCell = (field, i) => {
  const cell = element("td", undefined, field.kind), text = field.text(i);
  if (field.kind === "name") { const button = element("button", text); button.type = "button"; cell.append(button); } else cell.textContent = text;
  cell.title = text;
  return cell;
};
// Only the rows in sight are in the page; empty rows above and below hold the place of the others.
const showRows = () => {
  const box = $("rows"), total = table.rows.length, first = Math.max(0, Math.floor(box.scrollTop / ROW) - SPARE);
  if (first === table.first) return;
  const last = Math.min(total, first + Math.ceil((box.clientHeight || 400) / ROW) + 2 * SPARE), made = [];
  for (let place = first; place < last; place++) made.push(bodyRow(place));
  table.first = first;
  $("rows-table").setAttribute("aria-rowcount", String(total + 2));
  $("rows-body").replaceChildren(spacer(first * ROW), ...made, spacer((total - last) * ROW));
};
const repaintRows = () => { table.first = -1; showRows(); };
// The row of the table in sight, in its middle where it was not.
const revealRow = (i) => {
  const place = table.rows.indexOf(i), box = $("rows"), head = $("rows-head").offsetHeight;
  if (place >= 0 && (place * ROW < box.scrollTop || (place + 1) * ROW + head > box.scrollTop + box.clientHeight)) {
    box.scrollTop = place * ROW - box.clientHeight / 2 + head;
  }
  repaintRows();
};

// Selection ---------------------------------------------------------------------
const setSelection = (rows, added) => {
  if (!added) selection.mask.fill(0);
  for (const i of rows) selection.mask[i] = 1;
  selection.count = selection.mask.reduce((sum, v) => sum + v, 0);
  $("rows").scrollTop = 0;
  refreshRows(); redraw();
};
const clearAll = () => {
  table.filters.clear();
  for (const box of $("rows-head").querySelectorAll("input")) box.value = "";
  setSelection([]);
};

