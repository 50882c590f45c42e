// The controls: what a row shows, choosers, print.

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

const search = (text) => { state.found = rowsNamed(text); showFound(text); };

// Choosers ------------------------------------------------------------------------
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

// Rows that a section names ----------------------------------------------------------
for (const button of document.querySelectorAll("[data-row]")) button.addEventListener("click", () => goTo(Number(button.dataset.row)));

// Files and the table -------------------------------------------------------------------
$("save-png").addEventListener("click", savePng);
$("save-svg").addEventListener("click", saveSvg);
$("save-rows").addEventListener("click", saveRows);
$("select-rows").addEventListener("click", () => setSelection(table.rows.slice()));
$("clear-rows").addEventListener("click", clearAll);
$("rows").addEventListener("scroll", () => requestAnimationFrame(showRows));

// Print ---------------------------------------------------------------------------------
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
