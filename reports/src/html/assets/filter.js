
// ---- search and filters; their state is in the address, so that it can be passed on ----

const ui = { q: $("#q"), level: $("#level"), differ: $("#differ"), shown: $("#shown"), clear: $("#clear"),
  chips: $("#chips"), nothing: $("#nothing"), views: $$(".views button") };
const state = { view: "requirements", q: "", level: "", differ: false, status: new Set(), scenario: "" };

/** What the search looks through: of a requirement also its scenarios' words and messages. */
const words = data.scenarios.map((s) => [s.id, s.name, s.place, ...s.checklist, ...s.requirements, ...s.tags,
  ...s.runs.flatMap((o) => o ? [o.verdict, o.headline, o.reason ?? ""] : [])].join("\n").toLowerCase());
const requirements = $$("details.req").map((element) => {
  const cited = $$(".cited > li", element).map((item) => item.textContent);
  const places = cited.map((id) => byId.get(id)).filter((place) => place !== undefined);
  return { element, level: element.dataset.level, status: element.dataset.status.split("|"),
    words: [element.textContent.toLowerCase(), ...places.map((place) => words[place])].join("\n") };
});

const list = $("#scenario-list");
let scenarios = null;
/** The scenarios as a list, made when it is first shown. */
function scenarioList() {
  if (scenarios) return scenarios;
  scenarios = data.scenarios.map((scenario, place) => {
    const element = scenarioDetails(place);
    list.append(element);
    return { element, level: null, status: scenario.runs.map((o) => o ? o.verdict : "absent"), words: words[place] };
  });
  return scenarios;
}

const rows = () => state.view === "requirements" ? requirements : scenarioList();

function chips() {
  const counts = new Map();
  for (const row of rows()) for (const status of new Set(row.status)) {
    if (status !== "absent") counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  const order = ["broken", "fail", "known failure", "harness error", "could not run", "not run", "unsupported",
    "unproven", "partly run", "proven", "pass"];
  const sorted = [...counts].sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]));
  ui.chips.replaceChildren(...sorted.map(([status, n]) => el("button.chip", { type: "button",
    "aria-pressed": String(state.status.has(status)), onclick: () => {
      if (!state.status.delete(status)) state.status.add(status);
      apply();
    } }, `${status} `, el("span.count", {}, n))));
}

function matches(row) {
  return state.q.toLowerCase().split(/\s+/).every((word) => row.words.includes(word))
    && (!state.level || !row.level || row.level.split(" ")[0] === state.level)
    && (!state.status.size || row.status.some((status) => state.status.has(status)))
    && (!state.differ || new Set(row.status).size > 1);
}

function apply() {
  for (const section of $$("[data-view]")) section.hidden = section.dataset.view !== state.view;
  for (const button of ui.views) button.setAttribute("aria-pressed", String(button.dataset.show === state.view));
  const filtering = Boolean(state.q.trim() || state.level || state.differ || state.status.size);
  let shown = 0;
  for (const row of rows()) {
    row.element.hidden = !matches(row);
    if (!row.element.hidden) shown += 1;
  }
  if (state.view === "requirements") {
    for (const item of $$("details.item")) {
      item.hidden = !$("details.req:not([hidden])", item);
      item.open = filtering ? !item.hidden : item.hasAttribute("data-kept-open");
    }
  }
  ui.nothing.hidden = shown > 0;
  ui.shown.textContent = `${shown} of ${plural(rows().length, state.view.slice(0, -1))}`;
  ui.clear.hidden = !filtering;
  if (ui.q.value !== state.q) ui.q.value = state.q;
  ui.level.value = state.level;
  ui.level.hidden = state.view !== "requirements";
  if (ui.differ) ui.differ.checked = state.differ;
  chips();
  remember(filtering);
}

function remember(filtering) {
  const address = new URLSearchParams();
  if (state.view !== "requirements") address.set("view", state.view);
  for (const key of ["q", "level"]) if (state[key]) address.set(key, state[key]);
  if (state.differ) address.set("differ", "1");
  if (state.scenario) address.set("scenario", state.scenario);
  if (state.status.size) address.set("status", [...state.status].join(","));
  if (!filtering && state.view === "requirements" && !location.hash.includes("=")) return;
  try {
    history.replaceState(null, "", `#${address}`);
  } catch {
    // Some browsers refuse it for pages from a file. The page works without.
  }
}

/** Does what the address asks for: a filter, a scenario, or an element of the page. */
function follow() {
  let hash = location.hash.slice(1);
  try {
    hash = decodeURIComponent(hash);
  } catch {
    // No name of anything here.
  }
  if (hash.includes("=")) {
    const address = new URLSearchParams(location.hash.slice(1));
    state.view = address.get("view") === "scenarios" ? "scenarios" : "requirements";
    state.q = address.get("q") ?? "";
    state.level = address.get("level") ?? "";
    state.differ = Boolean(ui.differ && address.get("differ"));
    state.status = new Set((address.get("status") ?? "").split(",").filter(Boolean));
    state.scenario = address.get("scenario") ?? "";
    if (state.scenario) state.view = "scenarios";
    apply();
    const place = byId.get(state.scenario);
    if (place !== undefined) reveal(scenarioList()[place].element);
    return;
  }
  const target = hash && document.getElementById(hash);
  if (!target) return;
  if (target.matches("details.req, details.item") && state.view !== "requirements") {
    state.view = "requirements";
    apply();
  }
  reveal(target);
}

function reveal(target) {
  target.hidden = false;
  for (let outer = target; outer; outer = outer.parentElement?.closest("details")) {
    if (!outer.matches("details")) continue;
    outer.hidden = false;
    if (outer.fillNow) outer.fillNow();
    else outer.open = true;
  }
  target.scrollIntoView({ block: "start" });
  $("summary", target)?.focus({ preventScroll: true });
}

for (const item of $$("details.item")) {
  $("summary", item).addEventListener("click", () => item.toggleAttribute("data-kept-open", !item.open));
}
ui.q.addEventListener("input", () => { state.q = ui.q.value; apply(); });
ui.level.addEventListener("change", () => { state.level = ui.level.value; apply(); });
ui.differ?.addEventListener("change", () => { state.differ = ui.differ.checked; apply(); });
ui.clear.addEventListener("click", () => {
  Object.assign(state, { q: "", level: "", differ: false, status: new Set(), scenario: "" });
  apply();
  ui.q.focus();
});
for (const button of ui.views) {
  button.addEventListener("click", () => {
    state.view = button.dataset.show;
    state.status.clear();
    state.scenario = "";
    apply();
  });
}
$("#toolbar").addEventListener("submit", (event) => event.preventDefault());
addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input, select, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    ui.q.focus();
    ui.q.select();
  } else if (event.key === "Escape" && event.target === ui.q && state.q) {
    state.q = "";
    apply();
  }
});
addEventListener("hashchange", follow);

$("#toolbar").hidden = false;
if (!location.hash.includes("=")) apply();
follow();
// For whoever wonders how long a page of this size takes: milliseconds since it was asked for.
document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
