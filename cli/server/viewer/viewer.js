// The page of one array shows slices of it: a slider for each axis that is not shown, the two shown
// axes, limits of the contrast, and a colour map. Pixels are nearest items, one for each. The list of
// all arrays has previews.
import {
  hasPicture, limits, MAPS, openArray, paint, pictureAxes, readPlane,
} from "./planes.js";
import { showPreviews } from "./previews.js";

const MOST = 2048; // pixels of a side; longer axes are read with a step

const $ = (id) => document.getElementById(id);

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** The messages of an error and its causes. */
function reason(error) {
  return error.cause ? `${error.message}: ${reason(error.cause)}` : error.message ?? String(error);
}

class Viewer {
  constructor(array, names) {
    this.array = array;
    this.names = names;
    this.shape = array.shape;
    this.index = this.shape.map((length) => Math.floor(length / 2));
    [this.rows, this.columns] = pictureAxes(this.shape);
    this.wanted = 0; // number of the latest drawing
  }

  read() {
    const axes = [this.rows, this.columns];
    const range = (axis) => [0, this.shape[axis], Math.ceil(this.shape[axis] / MOST)];
    return readPlane(this.array, this.index, axes, axes.map(range));
  }

  paint(slice) {
    if ($("automatic").checked) [$("low").value, $("high").value] = limits(slice.data);
    const canvas = $("picture");
    paint(canvas, slice, [Number($("low").value), Number($("high").value)], $("map").value);
    const times = Math.max(1, Math.floor(512 / Math.max(slice.width, slice.height)));
    canvas.style.width = `${slice.width * times}px`;
  }

  /** Reads and paints; a later call overtakes. */
  async draw() {
    const mine = ++this.wanted;
    document.body.dataset.state = "reading";
    try {
      const slice = await this.read();
      if (mine !== this.wanted) return;
      this.slice = slice;
      this.paint(slice);
      $("status").textContent = "";
      document.body.dataset.state = "done";
    } catch (error) {
      if (mine !== this.wanted) return;
      $("status").textContent = `This slice cannot be read: ${reason(error)}`;
      document.body.dataset.state = "failed";
    }
  }

  repaint() {
    if (this.slice) this.paint(this.slice);
  }

  axisChoice(id, chosen, other) {
    const select = element("select", { id });
    this.names.forEach((name, axis) => select.append(
      element("option", { value: axis, textContent: name, selected: axis === chosen })));
    select.onchange = () => {
      const axis = Number(select.value);
      if (axis === this[other]) this[other] = this[id];
      this[id] = axis;
      this.controls();
      this.draw();
    };
    return select;
  }

  slider(axis) {
    const shown = element("output", { textContent: this.index[axis] });
    const range = element("input", {
      type: "range", id: `axis${axis}`, min: 0, max: this.shape[axis] - 1,
      value: this.index[axis],
    });
    range.oninput = () => {
      this.index[axis] = Number(range.value);
      shown.textContent = range.value;
      this.draw();
    };
    return element("label", {}, this.names[axis], range, shown);
  }

  controls() {
    const kept = ["low", "high", "map", "automatic"].map((id) => $(id));
    const form = $("controls");
    form.replaceChildren();
    form.onsubmit = (event) => event.preventDefault();
    if (this.shape.length > 1)
      form.append(
        element("label", {}, "rows", this.axisChoice("rows", this.rows, "columns")),
        element("label", {}, "columns", this.axisChoice("columns", this.columns, "rows")));
    this.shape.forEach((_, axis) => {
      if (axis !== this.rows && axis !== this.columns) form.append(this.slider(axis));
    });
    let [low, high, map, automatic] = kept;
    if (!low) {
      low = element("input", { type: "number", id: "low", step: "any" });
      high = element("input", { type: "number", id: "high", step: "any" });
      automatic = element("input", { type: "checkbox", id: "automatic", checked: true });
      map = element("select", { id: "map" });
      for (const name of Object.keys(MAPS))
        map.append(element("option", { value: name, textContent: name }));
      low.oninput = high.oninput = () => {
        automatic.checked = false;
        this.repaint();
      };
      automatic.onchange = map.onchange = () => this.repaint();
    }
    form.append(
      element("label", {}, "from", low), element("label", {}, "to", high),
      element("label", {}, automatic, "automatic contrast"), element("label", {}, "colours", map));
  }
}

async function main() {
  const path = location.pathname.replace(/^\/view\//, "").replace(/\/+$/, "");
  $("name").textContent = decodeURIComponent(path);
  document.title = decodeURIComponent(path);
  const array = await openArray(path);
  const meta = await (await fetch(`/${path}/zarr.json`)).json();
  const names = array.shape.map((_, axis) => meta.dimension_names?.[axis] ?? `axis ${axis}`);
  $("about").textContent = `${array.shape.join(" × ") || "()"}, ${array.dtype}`;
  if (!hasPicture(array.dtype))
    throw new Error(`items of type ${array.dtype} are not shown`);
  if (array.shape.includes(0)) throw new Error("the array is empty");
  const viewer = new Viewer(array, names);
  viewer.controls();
  await viewer.draw();
}

if (!$("picture")) showPreviews();
else main().catch((error) => {
  $("status").textContent = `This array cannot be shown: ${reason(error)}`;
  document.body.dataset.state = "failed";
});
