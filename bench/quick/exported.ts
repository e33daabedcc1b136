import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../machine/children.ts";
import { REPOSITORY } from "../setting/product.ts";

/**
 * Lays a commit's files out below the directory, beside the dependencies that are installed here, and builds them in the
 * commit's own way. Rejects when there is no such commit, or it cannot be built. @returns the script that starts it.
 */
export async function exportRevision(revision: string, directory: string): Promise<string> {
  await mkdir(directory, { recursive: true });
  const archive = join(directory, "revision.tar");
  const git = ["-C", REPOSITORY, "archive", "--format=tar", "-o", archive];
  await run("git", [...git, `${revision}^{commit}`]);
  await run("tar", ["-xf", archive, "-C", directory]);
  await symlink(join(REPOSITORY, "node_modules"), join(directory, "node_modules"));
  await run("npm", ["--prefix", directory, "run", "build"], 120_000);
  return join(directory, "dist/main.js");
}
