/** `npm run build`: everything that runs, the libraries too, goes into dist/, which then needs nothing but Node. */
import { defineConfig } from "rolldown";
import { chunks } from "./build/chunks.ts";
import { compact } from "./build/compact.ts";
import { leftOut } from "./build/left-out.ts";
import { licences } from "./build/licences.ts";
import { moduleType } from "./build/module-type.ts";

const { plugin: chunksPlugin, nameOf: chunkOf } = chunks();

export default defineConfig({
  cwd: import.meta.dirname,
  // What each thread is started with. The threads look for theirs beside the chunk that starts them.
  input: {
    main: "src/entry.ts",
    thread: "src/app/threads/thread.ts",
    "hashing-worker": "src/credentials/hashing/hashing-worker.ts",
    "watchdog-thread": "src/cli/serving/watchdog-thread.ts",
    "users-worker": "src/credentials/stores/users-worker.ts",
    "sqlite-worker": "src/credentials/stores/sql/sqlite-worker.ts",
  },
  platform: "node",
  // They are programs: nobody imports them.
  preserveEntrySignatures: false,
  tsconfig: false,
  transform: {
    target: "node24",
  },
  // `debug`, a dependency of http-proxy-3, takes it when it is there; nothing may be looked up outside.
  resolve: { alias: { "supports-color": false } },
  plugins: [
    leftOut([
      // http-proxy-3: requests other than WebSockets, with `followRedirects`.
      "follow-redirects/index.js",
      // pg: its other half, in C.
      "pg/lib/native/index.js",
    ]),
    licences("THIRD-PARTY-LICENSES.txt"),
    moduleType(),
    chunksPlugin,
    compact(),
  ],
  onLog(level, log, report) {
    report(log.code === "UNRESOLVED_IMPORT" ? "error" : level, log);
  },
  output: {
    dir: "dist",
    cleanDir: true,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ name: chunkOf, debugName: "start" }],
    },
    format: "esm",
    // So that stack traces can be read.
    minify: false,
    // V8 keeps the source of all that runs: two bytes for each character where one of them is not Latin-1.
    charset: "ascii",
    comments: { legal: true, annotation: false, jsdoc: false },
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
  },
});
