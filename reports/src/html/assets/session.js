
// ---- a page of recorded sessions: nothing was judged, so there are neither steps nor a frame that decided ----

for (const section of $$("section.session")) {
  const records = exchange(0, Number(section.dataset.s));
  if (records.length) section.append(diagram({ steps: [], failure: null }, records));
}
document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
