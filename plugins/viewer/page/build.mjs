// Bundles the page, or its unit tests, with esbuild.
//
//   node build.mjs FOLDER     viewer.js and viewer.css into FOLDER
//   node build.mjs --tests    each file of tests/ into build/tests, for node's own test runner
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const home = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2];
if (!target) {
  console.error("usage: node build.mjs FOLDER | --tests");
  process.exit(2);
}

const common = { absWorkingDir: home, bundle: true, jsx: "automatic", jsxImportSource: "preact", logLevel: "warning" };
if (target === "--tests") {
  const tests = readdirSync(join(home, "tests")).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...common,
    entryPoints: tests.map((name) => `tests/${name}`),
    outdir: "build/tests",
    outExtension: { ".js": ".mjs" },
    format: "esm",
    platform: "node",
  });
} else {
  await build({
    ...common,
    entryPoints: { viewer: "src/main.tsx" },
    outdir: target,
    format: "iife",
    minify: true,
    target: ["es2022"],
    legalComments: "inline",
    charset: "utf8",
  });
}
