import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TemporaryDirectory extends AsyncDisposable {
  readonly path: string;
  /** Writes a file and gives its absolute path. */
  write(name: string, content: string | Buffer): Promise<string>;
  close(): Promise<void>;
}

/** Creates a directory; `close` removes it. A killed process may write into it for a moment longer: the removal tries again. */
export async function temporaryDirectory(): Promise<TemporaryDirectory> {
  const path = await mkdtemp(join(tmpdir(), "sallyport-"));
  const close = (): Promise<void> => rm(path, { recursive: true, force: true, maxRetries: 10 });
  return {
    path,
    async write(name, content) {
      const file = join(path, name);
      await writeFile(file, content);
      return file;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
