// The card: the row to label, what its values say, and the queue behind it.

let queue = [];            // suggestions that wait
let current = null;        // the row on the card: row, reason, origin, likely; null where none is left
const passed = new Set();  // rows that were labelled or skipped here and may still be in a queue
const KEYS = "1234567890";

const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, pairs, text) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(pairs)) made.setAttribute(name, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
};

// Which row comes next ---------------------------------------------------------------
const isOpenRow = (i) => labels[i] < 0 && !passed.has(i);
const takeQueue = (suggestions) => {
  queue = suggestions.filter(({ row }) => isOpenRow(row) && !(current && row === current.row));
  if (current === null || (current.origin === "suggestion" && !isOpenRow(current.row))) next(); else showQueue();
};
// What another page has labelled or skipped is not offered here, and what it took back is again.
const passRows = ({ rows, done }) => {
  if (done.do === "skip") for (const row of rows) passed.add(row);
  if (done.do === "undo") for (const row of rows) passed.delete(row);
  if (current && current.origin === "suggestion" && !isOpenRow(current.row)) next(); else showQueue();
};
const next = () => {
  queue = queue.filter(({ row }) => isOpenRow(row));
  const first = queue.shift();
  put(first ? { ...first, origin: "suggestion" } : null);
};
// A row that a person chose; without one the queue goes on.
const choose = (i, reason, origin) => {
  if (i < 0) { if (!current || current.origin === "person") next(); return; }
  if (current && current.origin === "suggestion" && isOpenRow(current.row)) queue.unshift(current);
  queue = queue.filter(({ row }) => row !== i);
  put({ row: i, reason: reason || "You chose this row.", origin: origin || "person" });
};
const put = (item) => {
  current = item;
  state.kept = item ? item.row : -1;
  $("card").dataset.row = item ? String(item.row) : "";
  showCard();
  showQueue();
  remark();
};
// The rows that come after this one; each can be taken first.
const MOST_WAITING = 4;
const waitingItem = ({ row, reason }) => {
  const item = element("li"), button = element("button", data.ids[row]);
  button.type = "button"; button.title = reason;
  button.addEventListener("click", (event) => { choose(row, reason, "suggestion"); leaveButton(event); });
  item.append(button);
  return item;
};
const showQueue = () => {
  const waiting = queue.filter(({ row }) => isOpenRow(row)).slice(0, MOST_WAITING);
  $("queue-box").classList.toggle("hidden", waiting.length === 0);
  $("queue").replaceChildren(...waiting.map(waitingItem));
};

// The card itself -----------------------------------------------------------------
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
let shown = null;   // what the server says of the row on the card
const showCard = () => {
  shown = null;
  const none = current === null;
  for (const id of ["image", "no-image", "text"]) $(id).classList.add("hidden");
  for (const id of ["values-box", "values-bar", "nearest-box"]) $(id).classList.toggle("hidden", none);
  $("row-name").textContent = none ? nothingLeft() : data.ids[current.row];
  showQuestion();
  showReason();
  showClassesOfCard();
  if (!none) fetchCard(current.row);
};
// What is wanted of the person who looks at the page for the first time.
const showQuestion = () => {
  const known = session.classes.length, give = isNarrow() ? "Tap its class" : "Press its key or click it";
  const how = known === 0 ? "Name the first class." : give + (known === 1 ? ", or name another." : ".");
  $("ask").textContent = current ? "Which " + columns[0].name + " is this row? " + how : "";
  $("new-words").textContent = known ? "New class" : "Name the first class";
  $("new").classList.toggle("first", known === 0);
};
const showReason = () => {
  const reason = current ? current.reason.replace(/\.$/, "") : "", isOffered = current && current.origin === "suggestion";
  $("why").textContent = reason && (isOffered ? "Why this row: " + reason.charAt(0).toLowerCase() + reason.slice(1) : capital(reason)) + ".";
};
const nothingLeft = () => (labels.every((label) => label >= 0) ? "Every row has a label." : "No row waits: the next ones are being chosen.");
const fetchCard = async (row, quiet) => {
  let values;
  try { values = await ask("row/" + row); } catch (error) { $("values-hint").textContent = "The row could not be read: " + error.message; return; }
  if (!current || current.row !== row) return;
  shown = values;
  $("card").classList.toggle("seen", shown.image || shown.text !== null);
  showImage(); showText(); showClassesOfCard(); showValues(); showNearest();
  $("card").dataset.shown = String(row);
  if (!quiet) announce(spoken());
};
// After a refit the card says what the new model says.
const refreshCard = (suggestions) => {
  if (!current) return;
  const found = suggestions.find(({ row }) => row === current.row);
  if (current.origin === "suggestion") current.reason = found ? found.reason : "It was offered before the last label";
  showReason();
  fetchCard(current.row, true);
};
const percent = (p) => (p > 0.995 ? ">99" : p < 0.005 ? "<1" : Math.round(100 * p)) + " %";
const spoken = () => {
  const likely = shown.classes.map((c) => session.classes[c] + " " + percent(shown.probabilities[c]));
  return data.ids[current.row] + ". " + (likely.length ? "Likely " + likely.join(", ") + "." : current.reason);
};
const imageOf = (row) => location.pathname + "image/" + row;
const showImage = () => {
  const image = $("image");
  image.classList.toggle("hidden", !shown.image);
  if (shown.image) { image.src = imageOf(shown.row); image.alt = "Image of " + data.ids[shown.row]; }
  const lacks = !shown.image && shown.image_name !== null;
  $("no-image").classList.toggle("hidden", !lacks);
  if (lacks) $("no-image").textContent = "Its image cannot be shown: " + short(shown.image_name, 80) + " is no image file below the folder of images.";
};
const showText = () => {
  $("text").classList.toggle("hidden", shown.text === null);
  $("text").textContent = shown.text === null ? "" : shown.text;
};

// The classes to give -------------------------------------------------------------------
const classButton = (c) => {
  const button = element("button", undefined, "class"), key = KEYS[c];
  button.type = "button"; button.title = session.classes[c];
  if (key) { button.setAttribute("aria-keyshortcuts", key); button.append(element("kbd", key)); }
  button.append(keyImage(c), element("span", session.classes[c], "name"));
  button.addEventListener("click", (event) => { give(session.classes[c]); leaveButton(event); });
  return button;
};
// Buttons stay as they are while classes do: one that is replaced between press and release is never clicked.
let built = "";
const buildClasses = () => {
  const names = JSON.stringify(session.classes), box = $("classes");
  if (names === built && box.children.length) return;
  built = names;
  box.classList.toggle("long", session.classes.some((name) => name.length > 14));
  box.replaceChildren(...session.classes.map((_, c) => {
    const button = classButton(c);
    button.append(element("span", "", "count"), element("span", undefined, "share"));
    return button;
  }));
};
const showShares = () => [...$("classes").querySelectorAll("button")].forEach((button, c) => {
  const p = shown && shown.classes.length ? shown.probabilities[c] : undefined;
  button.querySelector(".count").textContent = p === undefined ? "" : percent(p);
  button.querySelector(".share").style.width = p === undefined ? "0" : Math.round(100 * p) + "%";
  button.setAttribute("aria-pressed", String(current !== null && labels[current.row] === c));
});
const showClassesOfCard = () => {
  buildClasses();
  showShares();
  showQuestion();
  const given = current && labels[current.row] >= 0, slip = current && news.slips.find(({ row }) => row === current.row);
  $("given").classList.toggle("hidden", !given);
  $("remove").classList.toggle("hidden", !given);
  if (given) $("given").textContent = "Its label is " + session.classes[labels[current.row]] + (slip ? "; a model that did not see it finds " + session.classes[slip.found] + ". Give the same class again to keep it." : ".");
  $("undo").disabled = !session.undoable;
  $("skip").disabled = current === null;
  $("again").classList.toggle("hidden", news.slips.length === 0);
};

// Values beside what is typical ------------------------------------------------------------
const LANE = 5;
// A narrow page shows the map sooner: fewer values, and those drawn shorter.
const isNarrow = () => window.innerWidth <= 900;
const mostValues = () => (isNarrow() ? 6 : 14);
let asNumbers = false;   // whether what is typical is written, or drawn
const usualText = (column, [a, b]) => (column.kind === "category" ? a + " (" + percent(b) + ")" : formatRounded(column.kind, a, b) + (column.kind === "date" ? "" : " ± " + formatRounded("number", b, b)));
// As many digits as its spread gives a meaning to.
const formatRounded = (kind, v, spread) => {
  if (kind === "date") return formatDate(Math.round(v));
  const digits = spread > 0 ? Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(spread)))) : 3;
  return formatNumber(Number(v.toFixed(digits)));
};
const ownText = (column) => {
  if (column.value === null) return GAP;
  return column.kind === "category" ? column.value : format(column.kind, column.kind === "number" ? Number(column.value.toPrecision(5)) : column.value);
};
const usualNames = () => (shown.classes.length ? shown.classes.map((c) => session.classes[c]) : ["all rows"]);
const misfit = (column, [a, b]) => (column.kind === "category" ? (column.value === a ? 0 : 1) : Math.abs(column.value - a) / (b || 1));
const numberCells = (column) => {
  const far = column.value === null ? [] : column.usual.map((usual) => misfit(column, usual)), least = Math.min(...far);
  return column.usual.map((usual, k) => element("td", usualText(column, usual), far.length > 1 && far[k] === least ? "fits" : ""));
};
// A lane for each class, from one standard deviation below its mean to one above; a line where the row is.
const strip = (column) => {
  const ends = column.usual.flatMap(([a, b]) => [a - 1.5 * b, a + 1.5 * b]);
  if (column.value !== null) ends.push(column.value);
  const STRIP = isNarrow() ? 120 : 150;
  const low = Math.min(...ends), high = Math.max(...ends), span = high - low || 1, lanes = column.usual.length;
  const x = (v) => 4 + ((v - low) / span) * (STRIP - 8), height = lanes * (LANE + 2) + 6;
  const drawn = svg("svg", { viewBox: "0 0 " + STRIP + " " + height, width: STRIP, height, class: "strip", "aria-hidden": "true" });
  column.usual.forEach(([a, b], k) => {
    const y = 3 + k * (LANE + 2), colour = shown.classes.length ? colourOfClass(shown.classes[k]) : ink.none;
    drawn.append(svg("rect", { x: x(a - b), y, width: Math.max(2, x(a + b) - x(a - b)), height: LANE, rx: 2, fill: colour, opacity: 0.55 }));
    drawn.append(svg("rect", { x: x(a) - 1, y, width: 2, height: LANE, fill: colour }));
  });
  if (column.value !== null) drawn.append(svg("line", { class: "here", x1: x(column.value), x2: x(column.value), y1: 0, y2: height }));
  return drawn;
};
const colourOfClass = (c) => palette[c % palette.length];
const levels = (column) => column.usual.map((usual, k) => {
  const line = element("div", undefined, "level");
  line.append(keyImage(shown.classes.length ? shown.classes[k] : NONE), usualText(column, usual));
  return line;
});
const drawnCell = (column) => {
  const cell = element("td", undefined, "drawn"), names = usualNames();
  const words = column.usual.map((usual, k) => names[k] + " " + usualText(column, usual)).join("; ");
  if (column.kind === "category") cell.append(...levels(column)); else cell.append(strip(column), element("span", words, "away"));
  cell.title = words;
  return cell;
};
const valueRow = (column) => {
  // A name may break after a sign that joins its words.
  const row = element("tr"), name = element("th", short(column.name, 40).replace(/[_.:/-]/g, "$&\u200b"));
  name.scope = "row"; name.title = column.name;
  row.append(name, element("td", ownText(column), column.kind === "category" ? "own" : "own number"), ...(asNumbers ? numberCells(column) : [drawnCell(column)]));
  return row;
};
const headCell = (c) => {
  const cell = element("span", undefined, "of");
  cell.append(keyImage(c), short(session.classes[c], 18));
  return cell;
};
const valueHead = () => {
  const head = element("tr"), own = element("th", "this row");
  head.append(element("td"), own);
  if (asNumbers) head.append(...usualNames().map((name) => element("th", "usual: " + name)));
  else {
    const cell = element("th", "usual: ");
    cell.append(...(shown.classes.length ? shown.classes.map(headCell) : ["all rows"]));
    head.append(cell);
  }
  for (const cell of head.querySelectorAll("th")) cell.scope = "col";
  const top = element("thead");
  top.append(head);
  return top;
};
const showValues = () => {
  const body = element("tbody");
  body.append(...shown.columns.slice(0, mostValues()).map(valueRow));
  $("values").replaceChildren(valueHead(), body);
  const more = shown.n_columns - Math.min(mostValues(), shown.columns.length);
  const first = shown.classes.length > 1 ? "First the columns that tell the likely classes apart." : "First the columns in which the row is unusual.";
  $("values-hint").textContent = first + (more > 0 ? " " + count(more, "column more is", "columns more are") + " not shown." : "");
};
$("numbers").addEventListener("click", () => {
  asNumbers = !asNumbers;
  press("numbers", asNumbers);
  if (shown) showValues();
});

// Neighbours ----------------------------------------------------------------------------
const neighbourItem = ({ row, text, image }) => {
  const item = element("li"), button = element("button");
  button.type = "button"; button.title = "Look at " + data.ids[row];
  if (image) { const picture = element("img"); picture.src = imageOf(row); picture.alt = ""; picture.loading = "lazy"; button.append(picture); }
  button.append(keyImage(labels[row] >= 0 ? labels[row] : NONE), element("span", data.ids[row], "name"), element("span", labels[row] >= 0 ? session.classes[labels[row]] : "", "count"));
  button.addEventListener("click", () => choose(row, "You chose this row, which has a label."));
  item.append(button);
  if (text) item.append(element("p", text, "hint"));
  return item;
};
const showNearest = () => {
  $("nearest-box").classList.toggle("hidden", shown.nearest.length === 0);
  $("nearest").classList.toggle("pictures", shown.nearest.some(({ image }) => image));
  $("nearest").replaceChildren(...shown.nearest.map(neighbourItem));
};

// What a person does ---------------------------------------------------------------------
const leaveButton = (event) => { if (event.detail > 0) $("card").focus({ preventScroll: true }); };
const selectedRows = () => { const rows = []; for (let i = 0; i < n; i++) if (selection.mask[i]) rows.push(i); return rows; };
const give = async (name) => {
  if (selection.count) return giveSelected(name);
  if (!current) { if (!session.classes.includes(name)) await act({ do: "label", rows: [], name }); return; }
  const { row, origin } = current;
  passed.add(row);
  next();
  const kept = await act({ do: "label", rows: [row], name, origin });
  passed.delete(row);
  if (!kept) choose(row, "This row was not saved; give its class again.");
};
const giveSelected = async (name) => {
  const rows = selectedRows();
  if (await act({ do: "label", rows, name, origin: "person" })) {
    setSelection([]);
    inform(count(rows.length, "row is", "rows are") + " now " + name + "; u takes it back.");
    takeQueue(queue);
  }
};
const markTogether = async () => {
  const rows = selectedRows();
  if (rows.length < 2) { inform("Select at least two rows that belong together, with the lasso or a box."); return; }
  const known = new Set(rows.map((row) => labels[row]).filter((label) => label >= 0));
  if (known.size > 1) { inform("Rows of several classes cannot belong together: " + [...known].map((c) => session.classes[c]).join(", ") + "."); return; }
  if (await act({ do: "together", rows })) {
    setSelection([]);
    inform(count(rows.length, "row", "rows") + " belong together now; u takes it back.");
  }
};
const skip = async () => {
  if (!current) return;
  const { row } = current;
  passed.add(row);
  next();
  if (!(await act({ do: "skip", rows: [row] }))) passed.delete(row);
};
const removeLabel = async () => {
  if (current && labels[current.row] >= 0) { await act({ do: "label", rows: [current.row], name: null }); showClassesOfCard(); }
};
const UNDONE = { label: "the label", skip: "the skip", together: "the group" };
const undo = async () => {
  if (!session.undoable) { inform("There is nothing to undo."); return; }
  try {
    const values = await ask("act", { do: "undo" }), { what, origin, count: size } = values.done;
    takeLabels(values);
    inform("Taken back: " + UNDONE[what] + " of " + count(size, "row", "rows") + ".");
    if (values.rows.length === 1) choose(values.rows[0], "What was done last was taken back.", origin);
  } catch (error) { inform("Not undone: " + error.message, true); }
};
let slipAt = 0;
const lookAgain = () => {
  if (!news.slips.length) { inform("No label looks like a slip."); return; }
  const slip = news.slips[slipAt++ % news.slips.length];
  choose(slip.row, "This label may be a slip.");
};
