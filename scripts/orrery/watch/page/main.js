// SPDX-License-Identifier: Apache-2.0
//
// The controls above the charts, and which charts are drawn: those near the window, the others when they come there.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const view = { axis: "step", logX: false, logY: false, smoothing: 0, hidden: new Set(), range: null };
const by = id => document.getElementById(id);

const visible = new Set(), stale = new Set();
const byBox = new Map();

function drawVisible() {
  for (const chart of visible) if (stale.delete(chart)) chart.draw();
}

function redraw() {
  for (const chart of charts) stale.add(chart);
  by("reset").disabled = !view.range;
  drawVisible();
}

function zoom(range) {
  view.range = range;
  redraw();
}

const charts = data.charts.map(chart => new Chart(chart, data.runs, view, zoom));
const watcher = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries)
    isIntersecting ? visible.add(byBox.get(target)) : visible.delete(byBox.get(target));
  drawVisible();
}, { rootMargin: "600px" });
for (const chart of charts) {
  byBox.set(chart.box, chart);
  by("charts").append(chart.box);
  watcher.observe(chart.box);
}

data.runs.forEach((run, i) => {
  const label = document.createElement("label");
  label.style = colourOf(i);
  label.title = `${run.path}: ${run.state}`;
  label.innerHTML = `<input type="checkbox" checked><i${i < 20 ? "" : ' class="again"'}></i><span></span>`;
  label.lastChild.textContent = run.name;
  label.firstChild.addEventListener("change", event => {
    event.target.checked ? view.hidden.delete(i) : view.hidden.add(i);
    redraw();
  });
  by("runs").append(label);
});

by("axis").addEventListener("change", event => {
  view.axis = event.target.value;
  zoom(null);
});
by("logX").addEventListener("change", event => {
  view.logX = event.target.checked;
  zoom(null); // it may begin at 0
});
by("logY").addEventListener("change", event => {
  view.logY = event.target.checked;
  redraw();
});
by("smoothing").addEventListener("input", event => {
  view.smoothing = Number(event.target.value);
  by("smoothed").textContent = view.smoothing.toFixed(2);
  redraw();
});
by("filter").addEventListener("input", event => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const chart of charts) {
    const text = `${chart.chart.title} ${chart.chart.tag}`.toLowerCase();
    chart.box.hidden = !words.every(word => text.includes(word));
  }
});
by("reset").addEventListener("click", () => zoom(null));
addEventListener("resize", redraw);
redraw();
