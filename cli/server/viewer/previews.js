// Small pictures in the list of arrays: the middle plane of each, or the middle of that plane if it has
// many chunks. They are read one after the other, when they come into sight.
import { hasPicture, limits, openArray, paint, pictureAxes, readPlane } from "./planes.js";

const SIDE = 96; // pixels, at most
const MOST_CHUNKS = 16, MOST_BYTES = 32 << 20; // of chunks, for one picture

/** The number of chunks of a range. */
function chunksOf([start, stop], chunk) {
  return Math.ceil(stop / chunk) - Math.floor(start / chunk);
}

/** Halves a range around its middle. */
function middleOf([start, stop]) {
  const quarter = Math.floor((stop - start) / 4);
  return [start + quarter, stop - quarter];
}

/** The ranges of rows and columns; null if even a small picture is too much. */
function choose(array, axes) {
  const chunk = axes.map((axis) => array.chunks[axis]);
  const ranges = axes.map((axis) => [0, array.shape[axis]]);
  const bytes = array.chunks.reduce((product, n) => product * n, 8);
  const most = Math.min(MOST_CHUNKS, Math.floor(MOST_BYTES / bytes));
  for (;;) {
    const [n, m] = ranges.map((range, k) => chunksOf(range, chunk[k]));
    if (n * m <= most) break;
    const k = n > m ? 0 : 1, [start, stop] = ranges[k];
    if (stop - start < 4) return null;
    ranges[k] = middleOf(ranges[k]);
  }
  const step = Math.ceil(Math.max(...ranges.map(([start, stop]) => stop - start)) / SIDE);
  return ranges.map((range) => [...range, step]);
}

async function show(row) {
  const path = new URL(row.querySelector("a").href).pathname.replace(/^\/view\//, "");
  const array = await openArray(path);
  const { shape } = array, axes = pictureAxes(shape);
  if (axes[0] < 0 || shape.includes(0) || !hasPicture(array.dtype)) return;
  const ranges = choose(array, axes);
  if (!ranges) return;
  const middle = shape.map((length) => Math.floor(length / 2));
  const plane = await readPlane(array, middle, axes, ranges);
  const canvas = document.createElement("canvas");
  paint(canvas, plane, limits(plane.data), "gray");
  row.querySelector(".preview").append(canvas);
}

/** Fills the cells of class "preview". A row's dataset.state tells when it is done. */
export function showPreviews() {
  let last = Promise.resolve();
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      last = last.then(() => show(target)).catch(() => {}) // without a picture
        .then(() => { target.dataset.state = "done"; });
    }
  }, { rootMargin: "200px" });
  document.querySelectorAll(".preview").forEach((cell) => observer.observe(cell.closest("tr")));
}
