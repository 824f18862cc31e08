
// ---- the wire exchange as a sequence diagram ----

/** Records that every connection begins with, and those that only keep it alive. */
const SETUP = new Set(["TCP_OPEN", "CONNECT", "CONNECTED", "AUTH_CHALLENGE", "AUTH_RESPONSE", "PING", "PONG",
  "LOOKUP", "LOOKUP_RESPONSE", "PARTITIONED_METADATA", "PARTITIONED_METADATA_RESPONSE"]);
/** Records that tell of something gone wrong. */
const ALARMING = new Set(["ERROR", "SEND_ERROR", "BAD_FRAME", "TCP_CLOSE", "TCP_REFUSED"]);
/** Rows that are built at a time. */
const CHUNK = 400;

/** Lifelines from left to right: clients, brokers by number, the controller, whatever else. */
function lifelines(records) {
  const rank = (name) => name === "client" ? -1 : name.startsWith("broker ") ? Number(name.slice(7)) || 0
    : name === "controller" ? 1e6 : 5e5;
  const names = new Set(["client"]);
  for (const record of records) {
    for (const name of [record.from, record.to]) if (name !== "cluster") names.add(name);
  }
  return [...names].sort((a, b) => rank(a) - rank(b));
}

/** Every field of a value on a line of its own, by its path. */
function flatten(value, path, rows) {
  if (value !== null && typeof value === "object" && Object.keys(value).length) {
    for (const [key, inner] of Object.entries(value)) {
      flatten(inner, Array.isArray(value) ? `${path}[${key}]` : path ? `${path}.${key}` : key, rows);
    }
  } else {
    rows.push([path, typeof value === "string" ? value : JSON.stringify(value)]);
  }
  return rows;
}

function fields(record) {
  const rows = [["time", `${time(record.t)} s`], ["from", record.from], ["to", record.to]];
  if (record.broker !== null) rows.push(["broker", String(record.broker)]);
  if (record.conn !== null) rows.push(["connection", String(record.conn)]);
  const table = (title, rows) => rows.length
    ? [el("tbody", {}, el("tr", {}, el("th.title", { colSpan: 2, scope: "rowgroup" }, title)),
        rows.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value))))]
    : [];
  const entry = record.entry ? flatten(record.entry, "", []) : [];
  if (record.payload) entry.push(["payload as text", record.payload]);
  return el("table.fields", {}, table(`Record ${record.n}`, rows), table(record.name, flatten(record.fields, "", [])),
    table("Entry", entry));
}

/** One record: an arrow between two lifelines, or a note on one. */
function row(record, lanes, decisive) {
  const at = (name) => lanes.indexOf(name);
  const [from, to] = [at(record.from), at(record.to)];
  const alarming = ALARMING.has(record.name) || record.kind === "fault";
  const item = el(`li.frame.${record.kind}`, { id: undefined });
  item.dataset.name = record.name;
  item.dataset.n = record.n;
  if (alarming) item.classList.add("alarming");
  if (SETUP.has(record.name)) item.classList.add("setup");
  if (decisive) item.classList.add("decisive");

  const middle = (lane) => `${(lane + 0.5) / lanes.length * 100}%`;
  const track = el("span.track", { "aria-hidden": "true" });
  if (from >= 0 && to >= 0 && from !== to) {
    const arrow = el(from < to ? "span.arrow.right" : "span.arrow.left");
    arrow.style.left = middle(Math.min(from, to));
    arrow.style.width = `${Math.abs(to - from) / lanes.length * 100}%`;
    track.append(arrow);
  } else if (from >= 0) {
    const dot = el("span.dot");
    dot.style.left = middle(from);
    track.append(dot);
  }
  const way = from === to ? (record.from === "cluster" ? "" : `at ${record.from}`) : `${record.from} to ${record.to}`;
  // A controller is wherever its broker is.
  const led = record.broker !== null && (record.from === "controller" || record.to === "controller")
    ? el("span.conn", {}, ` on broker ${record.broker}`) : null;
  const button = el("button.row", { type: "button", "aria-expanded": "false", onclick: () => toggle() },
    el("span.time", {}, time(record.t)),
    el("span.lanes", {},
      el("span.label", {},
        decisive ? el("span.mark", {}, "decided the verdict") : null,
        el("b", {}, record.name),
        el("span.hide", {}, ` ${way} `),
        led,
        record.label ? el("span.said", {}, ` ${record.label}`) : null),
      track));
  let shown = null;
  function toggle() {
    if (shown) {
      shown.remove();
      shown = null;
    } else {
      shown = fields(record);
      item.append(shown);
    }
    button.setAttribute("aria-expanded", String(shown !== null));
  }
  item.append(button);
  return item;
}

/** A band across the diagram: the step during which what follows happened. */
function band(step, failure, decided) {
  const sign = { passed: "✓", failed: "✗", skipped: "–" }[step.status];
  const look = { passed: "good", failed: "bad", skipped: "dim" }[step.status];
  return el(`li.band.${look}`, {}, el("p", {}, el(`span.sign.${look}`, { "aria-hidden": "true" }, sign), step.text),
    failure ? el("p.message", {}, decided ? failure.message : `The verdict fell in this step: ${failure.message}`) : null);
}

/** The rows in order: bands of steps, and the records of each. */
function sequence(outcome, records) {
  const rows = [];
  const timed = outcome.steps.some((step) => step.wire !== null);
  let next = 0;
  if (timed) {
    for (const step of outcome.steps) {
      if (step.wire === null) continue;
      const failed = step.status === "failed";
      rows.push({ step, failure: failed ? outcome.failure : null });
      while (next < records.length && records[next].n <= step.wire) rows.push({ record: records[next++] });
    }
    if (next < records.length) {
      rows.push({ step: { status: "skipped", text: "After the last step" }, failure: null });
    }
  }
  while (next < records.length) rows.push({ record: records[next++] });
  return rows;
}

function diagram(outcome, records) {
  const lanes = lifelines(records);
  const decided = outcome.failure?.record ?? null;
  const rows = sequence(outcome, records);
  const list = el("ol.frames", { "aria-label": "Wire exchange" });
  const head = el("div.lanehead", { "aria-hidden": "true" }, el("span.time", {}, "s"),
    el("span.lanes", {}, lanes.map((name) => el("span.lane", {}, name))));
  const lives = el("div.lives", { "aria-hidden": "true" }, lanes.map((_, lane) => {
    const life = el("span.life");
    life.style.left = `${(lane + 0.5) / lanes.length * 100}%`;
    return life;
  }));

  let built = 0;
  const more = el("button.more", { type: "button", onclick: () => build(built + CHUNK) });
  function build(until) {
    for (; built < Math.min(until, rows.length); built += 1) {
      const { record, step, failure } = rows[built];
      list.append(record ? row(record, lanes, record.n === decided) : band(step, failure, decided !== null));
    }
    more.hidden = built >= rows.length;
    more.textContent = `Show ${Math.min(CHUNK, rows.length - built)} of ${rows.length - built} more`;
    sift();
  }

  const needle = el("input", { type: "search", placeholder: "Only frames with…", "aria-label": "Only frames with this text",
    oninput: () => { build(rows.length); sift(); } });
  const quiet = el("input", { type: "checkbox", checked: true, onchange: () => sift() });
  const hidden = el("span.sub", { "aria-live": "polite" });
  function sift() {
    const wanted = needle.value.trim().toLowerCase();
    let out = 0;
    for (const item of list.children) {
      if (!item.classList.contains("frame")) continue;
      const setup = quiet.checked && item.classList.contains("setup") && !item.classList.contains("decisive");
      item.hidden = setup || (wanted !== "" && !item.textContent.toLowerCase().includes(wanted));
      if (item.hidden) out += 1;
    }
    hidden.textContent = out ? `${out} hidden` : "";
  }
  const jump = decided === null ? null : el("button.jump", { type: "button", onclick: () => {
    if (!$(".frame.decisive", list)) build(rows.length);
    const target = $(".frame.decisive", list);
    target?.scrollIntoView({ block: "center" });
    $("button.row", target ?? list)?.focus({ preventScroll: true });
  } }, "Go to the frame that decided");

  // Up and down move from frame to frame.
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.matches("button.row")) return;
    const buttons = $$("li.frame:not([hidden]) > button.row", list);
    buttons[buttons.indexOf(event.target) + step]?.focus();
    event.preventDefault();
  });

  const place = rows.findIndex((r) => r.record && r.record.n === decided);
  build(Math.max(CHUNK, place + 50));
  // What decided is worth its fields without being asked for.
  $(".frame.decisive > button.row", list)?.click();
  const box = el("div.diagram", {}, el("div.tools", {}, needle,
    el("label", {}, quiet, " hide handshakes, lookups and pings"), jump, hidden), head,
    el("div.chart", {}, lives, list), more);
  box.style.setProperty("--lanes", lanes.length);
  return box;
}
