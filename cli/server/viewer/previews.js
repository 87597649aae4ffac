// Small pictures in the list of arrays: the middle plane of each, or the middle of that plane if it has
// many chunks. They are read one after the other, when they come into sight.
import {
  chunkBytes, hasPicture, limits, middleOf, openArray, paint, pictureAxes, readPlane,
} from "./planes.js";

const SIDE = 96; // pixels, at most
const MOST_CHUNKS = 16, MOST_BYTES = 32 << 20; // of chunks, for one picture

async function show(row) {
  const path = new URL(row.querySelector("a").href).pathname.replace(/^\/view\//, "");
  const array = await openArray(path);
  const { shape } = array, axes = pictureAxes(shape);
  if (axes[0] < 0 || shape.includes(0) || !hasPicture(array.dtype)) return;
  const most = Math.min(MOST_CHUNKS, Math.floor(MOST_BYTES / chunkBytes(array)));
  const ranges = middleOf(array, axes, most);
  if (!ranges) return;
  const step = Math.ceil(Math.max(...ranges.map(([start, stop]) => stop - start)) / SIDE);
  const middle = shape.map((length) => Math.floor(length / 2));
  const plane = await readPlane(array, middle, axes, ranges.map((range) => [...range, step]));
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
