"use strict";
(function () {
  var root = document.documentElement;
  var narrow = window.matchMedia("(max-width: 640px)");
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var printing = false;

  function colours() {
    var style = getComputedStyle(root);
    return function (name) { return style.getPropertyValue("--" + name).trim(); };
  }

  // Data holds names such as "@side-0"; the theme says what colour that is.
  function painted(value, colour) {
    if (typeof value === "string") { return value.charAt(0) === "@" ? colour(value.slice(1)) || value : value; }
    if (Array.isArray(value)) { return value.map(function (item) { return typeof item === "object" && item ? painted(item, colour) : item; }); }
    if (value && typeof value === "object") {
      var found = {};
      Object.keys(value).forEach(function (key) {
        // Values, names and hovers are foreign: one that begins with an @ is no colour.
        var foreign = key === "x" || key === "y" || key === "name" || key === "text" || key === "hovertext" || key === "categoryarray";
        found[key] = foreign ? value[key] : painted(value[key], colour);
      });
      return found;
    }
    return value;
  }

  function escaped(text) { return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;"); }

  // Breaks a long name after hyphens and spaces into lines of about `room` characters.
  function broken(name, room) {
    var lines = [""];
    name.split(/(?<=[-, @])/).forEach(function (word) {
      while (word.length > room) {
        if (lines[lines.length - 1]) { lines.push(""); }
        lines[lines.length - 1] = word.slice(0, room);
        word = word.slice(room);
        lines.push("");
      }
      if ((lines[lines.length - 1] + word).length > room && lines[lines.length - 1]) { lines.push(""); }
      lines[lines.length - 1] += word;
    });
    return lines.filter(function (line) { return line.trim(); });
  }

  // Titles come escaped; what is broken here has no markup of its own but an entity, which is never cut at a space.
  function axis(own, colour, room) {
    var title = own.title.text && room ? broken(own.title.text, room).join("<br>") : own.title.text;
    return Object.assign({
      gridcolor: colour("grid"), zerolinecolor: colour("line"), linecolor: colour("line"), automargin: true,
      fixedrange: narrow.matches
    }, own, { title: Object.assign({ standoff: 8 }, own.title, { text: title }) });
  }

  function arranged(drawing, width, colour) {
    var layout = painted(drawing.layout, colour);
    layout.xaxis = axis(layout.xaxis, colour, Math.max(18, Math.floor(width * 0.6 / 6.6)));
    layout.yaxis = axis(layout.yaxis, colour, 40);
    if (layout.xaxis.type === "log") { layout.xaxis.dtick = undefined; layout.xaxis.nticks = 6; layout.xaxis.minor = { showgrid: false }; }
    if (drawing.rows.length) {
      var room = Math.max(10, Math.floor(width * (narrow.matches ? 0.3 : 0.32) / 6.6));
      var names = drawing.rows.map(function (row) { return broken(row, room); });
      var most = Math.max.apply(null, names.map(function (lines) { return lines.length; }));
      layout.yaxis.tickmode = "array";
      layout.yaxis.tickvals = drawing.rows;
      layout.yaxis.ticktext = names.map(function (lines) { return lines.map(escaped).join("<br>"); });
      layout.height += drawing.rows.length * Math.max(0, most - 1) * 15;
    }
    return Object.assign(layout, {
      width: undefined, autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("ink"), size: 12, family: "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("muted"), activecolor: colour("ink") },
      margin: { l: 10, r: 16, t: 26, b: 40 }, hovermode: "closest", dragmode: narrow.matches ? false : "zoom",
      hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("line"), font: { color: colour("ink") }, align: "left", namelength: -1 },
      legend: { orientation: "h", traceorder: "normal", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" }, bargap: 0.35
    });
  }

  // plotly.js is 4.8 MB of script: it is run when the first picture is wanted, so that text and tables are there before.
  function runPlotly() {
    if (window.Plotly) { return; }
    var script = document.createElement("script");
    script.textContent = document.getElementById("plotly").textContent;
    document.head.appendChild(script);
  }
  var soon = null;
  function withPlotly() {
    soon = soon || new Promise(function (resolve) { setTimeout(function () { runPlotly(); resolve(); }, 0); });
    return soon;
  }

  function draw(place) {
    // When a page is printed it must be drawn at once, before the browser goes on.
    return window.Plotly ? drawn(place) : withPlotly().then(function () { return drawn(place); });
  }

  function drawn(place) {
    var element = document.getElementById("plot-" + place);
    if (!element || !element.isConnected) { return Promise.resolve(); }
    try {
      var drawing = JSON.parse(document.getElementById("data-" + place).textContent);
      var colour = colours();
      // The place is kept until the picture is there, so that nothing jumps while one scrolls.
      return Plotly.react(element, painted(drawing.data, colour), arranged(drawing, element.clientWidth, colour), {
        responsive: true, displaylogo: false, displayModeBar: narrow.matches ? false : "hover",
        modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]]
      }).then(function () {
        element.dataset.drawn = "yes";
        element.style.minHeight = "";
        if (!root.dataset.pictured) { root.dataset.pictured = String(performance.now()); }
      }, function (error) { trouble(element, error); });
    } catch (error) {
      trouble(element, error);
      return Promise.resolve();
    }
  }

  function trouble(element, error) {
    element.textContent = "This picture could not be drawn (" + error + "); its table holds the numbers.";
    element.classList.add("trouble");
    element.dataset.drawn = "no";
    console.error(error);
  }

  var plots = Array.prototype.slice.call(document.querySelectorAll(".plot"));

  // A picture is drawn when one comes near it: with hundreds of them the page still opens at once.
  var watcher = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      if (entry.isIntersecting && !entry.target.dataset.drawn) {
        entry.target.dataset.drawn = "now";
        draw(entry.target.dataset.place);
      }
    });
  }, { rootMargin: "300px" });
  plots.forEach(function (plot) { watcher.observe(plot); });

  function redraw() {
    return Promise.all(plots.filter(function (plot) { return plot.dataset.drawn === "yes"; }).map(function (plot) { return draw(plot.dataset.place); }));
  }

  document.getElementById("theme").addEventListener("click", function () {
    var now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    redraw();
  });
  dark.addEventListener("change", function () { if (!root.dataset.theme && !printing) { redraw(); } });
  narrow.addEventListener("change", redraw);

  // On paper: light, every picture drawn, and the tables behind them open, since paper has no pointer.
  var before = { theme: undefined, opened: [] };
  window.addEventListener("beforeprint", function () {
    printing = true;
    before.theme = root.dataset.theme;
    root.dataset.theme = "light";
    before.opened = Array.prototype.filter.call(document.querySelectorAll("details.behind"), function (one) { return !one.open && !one.closest("#steps"); });
    before.opened.forEach(function (one) { one.open = true; });
    if (!window.Plotly) { runPlotly(); }
    plots.forEach(function (plot) { if (plot.offsetParent !== null) { plot.dataset.drawn = "now"; draw(plot.dataset.place); } });
  });
  window.addEventListener("afterprint", function () {
    printing = false;
    if (before.theme) { root.dataset.theme = before.theme; } else { delete root.dataset.theme; }
    before.opened.forEach(function (one) { one.open = false; });
    redraw();
  });

  // The filter: every word must be found; a judgement must also have a verdict that is ticked.
  var words = document.getElementById("words");
  var boxes = Array.prototype.slice.call(document.querySelectorAll("#chips input"));
  var found = Array.prototype.slice.call(document.querySelectorAll("[data-search]"));
  function filter() {
    var wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    var off = boxes.filter(function (box) { return !box.checked; }).map(function (box) { return box.value; });
    var shown = 0;
    found.forEach(function (one) {
      var text = one.dataset.search;
      var keep = wanted.every(function (word) { return text.indexOf(word) >= 0; }) && off.indexOf(one.dataset.verdict) < 0;
      one.hidden = !keep;
      shown += keep ? 1 : 0;
    });
    document.getElementById("shown").textContent = wanted.length || off.length ? shown + " of " + found.length + " shown" : "";
  }
  words.addEventListener("input", filter);
  boxes.forEach(function (box) { box.addEventListener("change", filter); });
  filter();
  root.dataset.ready = "yes";
})();
