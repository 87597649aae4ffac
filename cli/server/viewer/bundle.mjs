// Bundles the viewer with the packages in `packages`, and writes all its files as a C file:
//     node bundle.mjs PACKAGES OUT.c
import { readFileSync, readdirSync, writeFileSync, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const [packages, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(packages, "x.js"))("esbuild");

const result = await esbuild.build({
  entryPoints: [join(here, "viewer.js")], bundle: true, minify: true, write: false,
  format: "iife", target: "es2022", nodePaths: [packages], metafile: true,
  external: ["gzip", "lz4", "zlib", "zstd"].map((name) => `numcodecs/${name}`), // not served
  legalComments: "none", logLevel: "warning",
});

/** The name of the package of an input, or null. */
function packageOf(input) {
  const found = [...input.matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)/g)].pop();
  return found ? found[1] : null;
}

function licence(name) {
  const folder = join(packages, name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
  const text = file ? readFileSync(join(folder, file), "utf8") : `License: ${license}\n`;
  return `${name} ${version}\n\n${text}\n`;
}

const names = new Set(Object.keys(result.metafile.inputs).map(packageOf).filter(Boolean));
const read = (name) => readFileSync(join(here, name));
const assets = [
  ["view.html", "text/html; charset=utf-8", read("view.html")],
  ["viewer.css", "text/css; charset=utf-8", read("viewer.css")],
  ["viewer.js", "text/javascript; charset=utf-8", Buffer.from(result.outputFiles[0].contents)],
  ["viewer-licences.txt", "text/plain; charset=utf-8",
    Buffer.from([...names].sort().map(licence).join("-".repeat(80) + "\n"))],
];

let c = "/* Made by bundle.mjs. */\n#include \"server/viewer.h\"\n\n";
assets.forEach(([, , bytes], i) => {
  c += `static const unsigned char asset${i}[] = {\n`;
  for (let at = 0; at < bytes.length; at += 20)
    c += `    ${[...bytes.subarray(at, at + 20)].join(",")},\n`;
  c += "};\n";
});
c += "\nconst viewer_asset viewer_assets[] = {\n";
assets.forEach(([name, type], i) => {
  c += `    {"${name}", "${type}", asset${i}, sizeof asset${i}},\n`;
});
c += `};\nconst size_t viewer_n_assets = ${assets.length};\n`;
if (!existsSync(out) || readFileSync(out, "utf8") !== c) writeFileSync(out, c);
