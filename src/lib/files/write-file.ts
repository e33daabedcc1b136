import { open, rename, rm } from "node:fs/promises";

/** Writes a new file with mode 0600 to the disk. Rejects with the system's error; no file is left then. */
export async function writeNewFile(path: string, text: string): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  await orRemove(path, async () => {
    await file.writeFile(text);
    await file.sync();
  });
}

/**
 * Replaces a file atomically, with mode 0600. Rejects with the system's error; the file is unchanged then.
 *
 * @param draft the path of a new file in the same directory.
 */
export async function replaceFile(path: string, draft: string, text: string): Promise<void> {
  await writeNewFile(draft, text);
  await orRemove(draft, () => rename(draft, path));
}

async function orRemove(path: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    await rm(path, { force: true }).catch(() => undefined);
    throw error;
  }
}
