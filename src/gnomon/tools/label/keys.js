// Keys, the selection, dialogs; then the page begins.

// What the hand on the map asks for ----------------------------------------------------------
const pairsOf = (i, most) => {
  const given = labels[i] >= 0, list = [[columns[0].name, shownClass[i] === NONE ? GAP : session.classes[shownClass[i]] + (given ? "" : ", predicted")]];
  if (!given && certainty[i] === certainty[i]) list.push(["probability", percent(certainty[i])]);
  return list.slice(0, most);
};
const showDetail = () => {};
const keep = (i) => choose(i);
const goTo = (i) => {
  if (!inView(i)) showAll();
  if (state.hidden.delete(group[i])) showLegend();
  choose(i);
  state.hover = -1; hover(i);
  redraw();
};
const setSelection = (rows, added) => {
  if (!added) selection.mask.fill(0);
  for (const i of rows) selection.mask[i] = 1;
  selection.count = selection.mask.reduce((sum, v) => sum + v, 0);
  $("chosen").classList.toggle("hidden", selection.count === 0);
  $("chosen-count").textContent = count(selection.count, "row selected", "rows selected");
  $("chosen-classes").replaceChildren(...session.classes.map((_, c) => classButton(c)));
  redraw();
};

// Search: names here, texts on the server; what is found can be selected at once.
const selectFound = () => {
  if (state.found.length < 2) return [];
  const item = element("li"), button = element("button", "Select all " + state.found.length);
  button.type = "button";
  button.addEventListener("click", (event) => { setSelection(state.found); leaveButton(event); });
  item.append(button);
  return [item];
};
const search = async (text) => {
  state.found = rowsNamed(text);
  showFound(text, selectFound());
  if (!session.text || !text.trim()) return;
  const { rows } = await ask("search?text=" + encodeURIComponent(text.trim()));
  if ($("search").value !== text) return;
  state.found = [...new Set([...state.found, ...rows])].slice(0, MOST_FOUND);
  showFound(text, selectFound());
};

// Dialogs --------------------------------------------------------------------------------
const openNew = () => {
  $("known").replaceChildren(...session.classes.map((name) => { const o = element("option"); o.value = name; return o; }));
  $("new-name").value = "";
  $("new-title").textContent = "Class of " + (selection.count ? count(selection.count, "row", "rows") : current ? data.ids[current.row] : "rows to come");
  $("new-dialog").showModal();
  $("new-name").focus();
};
$("new-form").addEventListener("submit", () => {
  const name = $("new-name").value.trim().replace(/\s+/g, " ");
  if (name) give(name);
});
$("new-cancel").addEventListener("click", () => $("new-dialog").close());
$("keys").addEventListener("click", () => $("keys-dialog").showModal());
const save = async () => {
  $("save").disabled = true;
  inform("The results are being written; you can go on.");
  try {
    const { files } = await ask("export", {});
    inform("Written: " + files.join(", "));
    announce("The results are written.");
  } catch (error) { inform("Not written: " + error.message, true); }
  $("save").disabled = false;
};
$("save").addEventListener("click", save);

// Keys ----------------------------------------------------------------------------------
const BUTTONS = { new: openNew, skip, undo, again: lookAgain, remove: removeLabel, together: markTogether, clear: () => setSelection([]) };
for (const [id, does] of Object.entries(BUTTONS)) $(id).addEventListener("click", (event) => { does(); leaveButton(event); });
const ACTIONS = { " ": skip, u: undo, n: openNew, r: lookAgain, x: removeLabel, g: markTogether, l: () => setMode("lasso"), m: () => setMode("move"), "?": () => $("keys-dialog").showModal() };
const isTyping = (event) => event.target.matches("input:not([type=checkbox]), select, textarea") || document.querySelector("dialog[open]") !== null;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || !$("keys-on").checked) return;
  const c = event.key.length === 1 ? KEYS.indexOf(event.key) : -1, does = ACTIONS[event.key];
  // A button that has the focus is pressed by the space bar, as everywhere.
  if (event.key === " " && event.target.matches("button")) return;
  if (c < 0 && !does) return;
  event.preventDefault();
  event.stopPropagation();
  if (event.repeat) return;
  if (does) does(); else if (c < session.classes.length) give(session.classes[c]);
  else inform("There is no class " + event.key + "; n makes a new one.");
}, true);

// Colours of keys and lanes are those of the theme.
const repaintCard = () => { built = ""; showClassesOfCard(); if (shown) { showValues(); showNearest(); } };
dark.addEventListener("change", repaintCard);
$("theme").addEventListener("click", repaintCard);

// Beginning --------------------------------------------------------------------------------
fill($("colour"), columns.map((column) => column.name), 0);
$("colour").addEventListener("change", (event) => {
  state.column = Number(event.target.value);
  state.hidden.clear(); sprites = new Map(); places = null;
  groupRows(); chooseNames(); showLegend(); redraw();
});
for (let i = 0; i < n; i++) paintLabel(i);
countLabels();
readTheme(); groupRows(); chooseNames(); setMode("move"); showLegend();
press("density", state.density);
canvas.dataset.version = String(news.version);
new ResizeObserver(resize).observe(canvas);
resize();
takeQueue(news.queue);
showProgress();
