// The page of one array shows slices of it: a slider for each axis that is not shown, the two shown
// axes, limits of the contrast, and a colour map. Pixels are nearest items, one for each. A plane of many
// chunks is shown in part. The list of all arrays has previews.
import {
  chunkBytes, hasPicture, limits, MAPS, middleOf, openArray, paint, pictureAxes, readPlane,
} from "./planes.js";
import { showPreviews } from "./previews.js";

const MOST = 2048; // pixels of a side; longer axes are read with a step
const MOST_CHUNKS = 1000, MOST_BYTES = 256 << 20; // of chunks, for one picture

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
    this.chooseRanges();
  }

  /** The part of the plane that is shown: [start, stop] for rows and columns. */
  chooseRanges() {
    const most = Math.min(MOST_CHUNKS, Math.floor(MOST_BYTES / chunkBytes(this.array)));
    this.ranges = middleOf(this.array, [this.rows, this.columns], Math.max(1, most));
  }

  read(signal) {
    const ranges = this.ranges.map(([start, stop]) =>
      [start, stop, Math.ceil((stop - start) / MOST)]);
    return readPlane(this.array, this.index, [this.rows, this.columns], ranges, signal);
  }

  paint(slice) {
    if ($("automatic").checked) [$("low").value, $("high").value] = limits(slice.data);
    const canvas = $("picture");
    paint(canvas, slice, [Number($("low").value), Number($("high").value)], $("map").value);
    const times = Math.max(1, Math.floor(512 / Math.max(slice.width, slice.height)));
    canvas.style.width = `${slice.width * times}px`;
  }

  /** Reads and paints. A later call ends an earlier one. */
  async draw() {
    this.reading?.abort();
    const mine = this.reading = new AbortController();
    document.body.dataset.state = "reading";
    try {
      const slice = await this.read(mine.signal);
      if (mine !== this.reading) return;
      this.slice = slice;
      this.paint(slice);
      $("status").textContent = "";
      document.body.dataset.state = "done";
    } catch (error) {
      if (mine !== this.reading) return;
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
      this.chooseRanges();
      this.controls();
      this.draw();
    };
    return select;
  }

  slider(id, name, most, value, change) {
    const shown = element("output", { textContent: value });
    const range = element("input", { type: "range", id, min: 0, max: most, value });
    range.oninput = () => {
      shown.textContent = range.value;
      change(Number(range.value));
      this.draw();
    };
    return element("label", {}, name, range, shown);
  }

  axisSlider(axis) {
    return this.slider(`axis${axis}`, this.names[axis], this.shape[axis] - 1, this.index[axis],
      (value) => { this.index[axis] = value; });
  }

  /** Moves the part of the plane that is shown along its rows (0) or columns (1). */
  partSlider(k, name) {
    const [start, stop] = this.ranges[k], length = this.shape[k ? this.columns : this.rows] ?? 1;
    if (stop - start === length) return "";
    return this.slider(`from-${name}`, `${name} from`, length - (stop - start), start,
      (value) => { this.ranges[k] = [value, value + stop - start]; });
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
      if (axis !== this.rows && axis !== this.columns) form.append(this.axisSlider(axis));
    });
    form.append(this.partSlider(0, "rows"), this.partSlider(1, "columns"));
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

/** Links to the arrays of a group, which the metadata of the root name. */
function showGroup(path, members) {
  const list = element("ul", { id: "members" });
  for (const [name, member] of Object.entries(members ?? {}))
    if (member.node_type === "array")
      list.append(element("li", {}, element("a", {
        href: `/view/${path}/${encodeURI(name)}`, textContent: name })));
  $("picture").replaceWith(list);
  document.body.dataset.state = "done";
}

async function main() {
  const path = location.pathname.replace(/^\/view\//, "").replace(/\/+$/, "");
  $("name").textContent = decodeURIComponent(path);
  document.title = decodeURIComponent(path);
  const answer = await fetch(`/${path}/zarr.json`);
  if (!answer.ok) throw new Error(await answer.text());
  const meta = await answer.json();
  if (meta.node_type === "group") return showGroup(path, meta.consolidated_metadata?.metadata);
  const { shape, data_type: type } = meta;
  $("about").textContent = `${shape.join(" × ") || "()"}, ${type.name ?? type}`;
  if (!hasPicture(type)) throw new Error(`items of type ${type.name ?? type} are not shown`);
  if (shape.includes(0)) throw new Error("the array is empty");
  const names = shape.map((_, axis) => meta.dimension_names?.[axis] ?? `axis ${axis}`);
  const viewer = new Viewer(await openArray(path), names);
  viewer.controls();
  await viewer.draw();
}

if (!$("picture")) showPreviews();
else main().catch((error) => {
  $("status").textContent = `This array cannot be shown: ${reason(error)}`;
  document.body.dataset.state = "failed";
});
