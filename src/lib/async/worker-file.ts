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
