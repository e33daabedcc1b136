#!/usr/bin/env -S node --min-semi-space-size=2 --max-semi-space-size=8 --no-memory-reducer --v8-pool-size=2 --concurrent-marking-max-worker-num=1 --disallow-code-generation-from-strings
import { setFlagsFromString } from "node:v8";
import { hardenProcess } from "./lib/process-hardening.ts";
import { unsupportedNode } from "./lib/node-version.ts";

const refusal = unsupportedNode(process.versions.node);
if (refusal === undefined) {
  // Loaded late: on a Node that is refused, nothing else may be reached.
  // `debug`, a dependency of http-proxy-3, would print targets with their queries.
  delete process.env["DEBUG"];
  hardenProcess();
  // Its threads begin with the small young generation that V8 has by itself: with the main thread's, four workers took 10 MiB more.
  setFlagsFromString("--min-semi-space-size=0");
  // Without a listener the signal would end a start that it comes into. What changes during the start is noticed after it.
  if (process.argv[2] === "serve") process.on("SIGHUP", () => undefined);
  const { run } = await import("./cli/run.ts");
  process.exit(await run(process.argv.slice(2)));
} else {
  process.stderr.write(`${refusal}\n`);
  process.exitCode = 1;
}
