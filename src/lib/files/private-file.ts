import { accessSync, constants, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { open, rename, rm } from "node:fs/promises";
import { systemCode } from "../text/error-code.ts";

/** The result of `stat`, which follows links. */
type Ownership = Pick<Stats, "mode" | "uid">;

/**
 * Whether other users can access a file that should be private. A file that we own must be accessible to its owner
 * only. We can read a file of another owner only through its group, as in a Kubernetes volume with `fsGroup`
 * (`root:65532`, 0440), so only access for everyone exposes it.
 */
export function isExposed({ mode, uid }: Ownership): boolean {
  const own = process.getuid?.();
  if (own === undefined) return false;
  return (mode & (uid === own ? 0o077 : 0o007)) !== 0;
}

/**
 * Whether every user of the machine can write to a file, or create files in a directory. On a read-only volume, such
 * as a Secret mounted by Kubernetes (0777 with the sticky bit), the mode does not matter.
 */
export function isOpenToAll(path: string, { mode }: Pick<Stats, "mode">): boolean {
  return (mode & 0o002) !== 0 && process.getuid !== undefined && !isReadOnly(path);
}

/** Whether other users can replace this file. The sticky bit prevents it. */
export function isReplaceable(file: string): boolean {
  const directory = dirname(file);
  const stats = statSync(directory);
  return (stats.mode & 0o1000) === 0 && isOpenToAll(directory, stats);
}

function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (error) {
    return systemCode(error) === "EROFS";
  }
}

/**
 * Describes the permissions of a file that this process cannot read: `mode 0600, owner 0:0; this process runs as
 * 65532:65532`. If a directory denies access, describes that directory.
 */
export function describePermissions(path: string): string {
  const own = `this process runs as ${process.getuid?.() ?? "?"}:${process.getgid?.() ?? "?"}`;
  for (let at = path; ; at = dirname(at)) {
    try {
      const { mode, uid, gid } = statSync(at);
      const name = at === path ? "" : `${at} has `;
      const bits = (mode & 0o7777).toString(8).padStart(4, "0");
      return `${name}mode ${bits}, owner ${uid}:${gid}; ${own}`;
    } catch {
      if (dirname(at) === at) return own;
    }
  }
}

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
