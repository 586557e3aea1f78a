// Make plots interactive: they fit the window, show a tooltip, and can highlight one series.
// The static pictures stay for print, and as a fallback if this script fails.

const tip = document.body.appendChild(Object.assign(document.createElement("div"), { className: "tip", hidden: true }));

function digits(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  return (Number.isInteger(value) ? String(value) : value.toFixed(4)).replace("-", "−");
}

function showTip(event, datum, titles) {
  const lines = titles.filter(([name]) => name in datum).map(([name, title]) => {
    const line = document.createElement("div");
    const value = Object.assign(document.createElement("bdi"), { textContent: digits(datum[name]) });
    line.append(Object.assign(document.createElement("span"), { textContent: title + " " }), value);
    return line;
  });
  tip.replaceChildren(...lines);
  tip.hidden = false;
  const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
  const above = event.clientY - tip.offsetHeight - 12;
  tip.style.left = Math.max(8, left) + "px";
  tip.style.top = (above > 8 ? above : event.clientY + 18) + "px";
}

function hideTip() {
  tip.hidden = true;
}

class Plot {
  constructor(figure) {
    this.titles = JSON.parse(figure.querySelector(".titles").textContent);
    this.keys = [...figure.querySelectorAll(".key")];
    this.views = [];
    this.pinned = null;
    this.keys.forEach((key) => this.press(key));
    figure.querySelectorAll(".panel").forEach((panel) => observer.observe(Object.assign(panel, { plot: this })));
  }

  press(key) {
    key.setAttribute("role", "button");
    key.setAttribute("aria-pressed", "false");
    key.tabIndex = 0;
    const pin = () => {
      this.pinned = this.pinned === key.dataset.series ? null : key.dataset.series;
      this.focus(this.pinned);
    };
    key.addEventListener("click", pin);
    key.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pin();
    });
    key.addEventListener("pointerenter", () => this.focus(key.dataset.series));
    key.addEventListener("pointerleave", () => this.focus(this.pinned));
  }

  focus(series) {
    this.views.forEach((view) => view.signal("focus", series).runAsync());
    this.keys.forEach((key) => {
      key.setAttribute("aria-pressed", String(this.pinned === key.dataset.series));
      key.classList.toggle("faint", series !== null && series !== key.dataset.series);
    });
  }

  async render(panel) {
    const spec = JSON.parse(panel.querySelector(".spec").textContent);
    const box = document.createElement("div");
    box.className = "chart";
    box.style.maxWidth = spec.width + "px";
    box.style.minWidth = Math.min(spec.usermeta.least, spec.width) + "px";
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", panel.dataset.label);
    const frame = panel.appendChild(document.createElement("div"));
    frame.append(box);
    try {
      const { view } = await vegaEmbed(box, fitted(spec, box.clientWidth), {
        ast: true, // interpret expressions, because the policy of the page forbids eval
        actions: false,
        defaultStyle: false,
        renderer: "svg",
        tooltip: false,
      });
      // The box has the text alternative. Without this, the picture inside would need another one.
      box.querySelectorAll("svg").forEach((svg) => svg.setAttribute("aria-hidden", "true"));
      if (frame.scrollWidth > frame.clientWidth) scrolls(frame, panel.dataset.label);
      this.listen(view);
      panel.classList.add("interactive");
    } catch (problem) {
      frame.remove();
      throw problem;
    }
  }

  listen(view) {
    const over = (event, item) => {
      const datum = item && item.datum;
      if (!datum || datum.x === undefined) return;
      showTip(event, datum, this.titles);
      if (datum.s !== undefined) this.focus(datum.s);
    };
    const out = () => {
      hideTip();
      this.focus(this.pinned);
    };
    view.addEventListener("pointermove", over);
    view.addEventListener("pointerdown", over);
    view.addEventListener("pointerout", out);
    this.views.push(view);
    this.focus(this.pinned);
  }
}

// Let a chart that is wider than the screen scroll, also by the keyboard.
function scrolls(frame, label) {
  frame.className = "wide";
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", label);
}

// Return the specification for the available width, with shorter labels on narrow screens.
function fitted(spec, room) {
  const copy = { ...spec, width: "container" };
  if (room > 400) return copy;
  copy.config.axis.labelLimit = room / 3;
  copy.layer.filter((layer) => layer.name === "names").forEach((layer) => (layer.mark.limit = room / 5));
  return copy;
}

const observer = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      target.plot.render(target);
    }
  },
  { rootMargin: "400px" },
);

addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
addEventListener("scroll", hideTip, { passive: true });
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => (details.open = true)));
document.querySelectorAll(".plot").forEach((figure) => new Plot(figure));
