import { type ResourceLimits, Worker } from "node:worker_threads";

/**
 * Locates the code of a worker thread: in `src`, a TypeScript file; in `dist`, an entry of the bundle next to the chunk
 * that starts the thread.
 *
 * @param name the file name without its extension.
 * @param beside `import.meta.url` of the file that starts the thread. It must be in the same folder.
 */
export function workerFile(name: string, beside: string): URL {
  return new URL(`./${name}${beside.endsWith(".ts") ? ".ts" : ".js"}`, beside);
}

/**
 * Starts a thread for one kind of work, which has the first word of its file as its name. The environment may contain
 * secrets and is not passed on.
 */
export function startWorker(
  file: string,
  beside: string,
  resourceLimits: ResourceLimits,
  workerData?: unknown,
): Worker {
  const [name] = file.split("-", 1);
  const own = { resourceLimits, execArgv: [], env: {}, workerData };
  return new Worker(workerFile(file, beside), { name, ...own });
}
