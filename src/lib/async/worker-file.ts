/**
 * Locates the code of a worker thread: a TypeScript file in `src`, or in `dist` an entry of the bundle, beside the
 * chunk that starts the thread.
 *
 * @param name the file name without its extension.
 * @param beside `import.meta.url` of the file that starts the thread, in the same folder.
 */
export function workerFile(name: string, beside: string): URL {
  return new URL(`./${name}${beside.endsWith(".ts") ? ".ts" : ".js"}`, beside);
}
