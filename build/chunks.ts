import type { Plugin, PluginContext } from "rolldown";

/** What a start loads: the imports of each that no earlier one has are one chunk. */
const LARGE = ["src/app/threads/thread.ts", "src/cli/serving/serve.ts"];
/** What must stay cheap to load: a health check that runs every few seconds, and threads for one kind of work. */
const SMALL = [
  "src/entry.ts",
  "src/cli/run.ts",
  "src/cli/healthcheck.ts",
  "src/cli/serving/watchdog-thread.ts",
  "src/credentials/hashing/hashing-worker.ts",
  "src/credentials/stores/users-worker.ts",
  "src/credentials/stores/sql/sqlite-worker.ts",
];

interface Chunks {
  readonly plugin: Plugin;
  /** Returns the name of a module's chunk; null leaves it to the bundler. */
  nameOf(id: string): string | null;
}

/**
 * Puts what a start loads into two files: in sixty, for as many programs share them, it took 1.1 times as long, and 2 MB more. A thread
 * loads the first one only.
 */
export function chunks(): Chunks {
  const names = new Map<string, string | null>();
  const plugin: Plugin = {
    name: "chunks",
    buildEnd() {
      for (const id of SMALL.flatMap((file) => importedBy(this, file))) names.set(id, null);
      for (const file of LARGE) {
        for (const id of importedBy(this, file)) if (!names.has(id)) names.set(id, file);
      }
    },
  };
  return {
    plugin,
    // The entry of the thread is called `thread` already.
    nameOf: (id) => names.get(id)?.replace(/^.*\/(\w+)\.ts$/, "for-$1") ?? null,
  };
}

/** Returns all that a module imports statically, without itself: what it does when loaded is its own. @throws Error if there is no such module. */
function importedBy(graph: PluginContext, file: string): readonly string[] {
  const root = [...graph.getModuleIds()].find((id) => id.endsWith(`/${file}`));
  if (root === undefined) throw new Error(`${file} is not in the bundle`);
  const found = new Set([root]);
  // A set is also iterated over what is added meanwhile.
  for (const id of found) {
    for (const imported of graph.getModuleInfo(id)?.importedIds ?? []) found.add(imported);
  }
  found.delete(root);
  return [...found];
}
