import { copyFile, cp, lstat, mkdir, readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { run } from "../machine/children.ts";

export const REPOSITORY = resolve(import.meta.dirname, "../..");

/** Builds the product. @returns the script to start. */
export async function buildProduct(directory: string): Promise<string> {
  const dist = join(directory, "dist");
  await run("npm", ["--prefix", REPOSITORY, "run", "build", "--", "--dir", dist], 120_000);
  return join(dist, "main.js");
}

/** Copies the content of the image except Node, with a built `dist`. @returns the script to start. */
export async function installProduct(directory: string, dist: string): Promise<string> {
  await mkdir(directory, { recursive: true });
  await copyFile(join(REPOSITORY, "LICENSE"), join(directory, "LICENSE"));
  await cp(dist, join(directory, "dist"), { recursive: true });
  return join(directory, "dist/main.js");
}

/** Returns the bytes that a directory occupies on disk, as `du` counts them. */
export async function occupiedBytes(directory: string): Promise<number> {
  const names = await readdir(directory, { recursive: true });
  const sizes = await Promise.all(
    names.map(async (name) => {
      const { blocks } = await lstat(join(directory, name));
      return blocks * 512;
    }),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
