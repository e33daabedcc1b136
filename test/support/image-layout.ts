import { execFile } from "node:child_process";
import { chmod, copyFile, cp, mkdir, readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { buildInto } from "./build.ts";

const REPOSITORY = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

/** The parts of the Dockerfile's final stage that decide what runs. */
export interface FinalStage {
  readonly instructions: readonly string[];
  readonly entrypoint: readonly string[];
  readonly healthcheck: readonly string[];
  readonly user: string;
}

/** Parses the instructions after the last `FROM`. Commands must be in exec form (a JSON list). */
export async function finalStage(): Promise<FinalStage> {
  const text = await readFile(join(REPOSITORY, "Dockerfile"), "utf8");
  const lines = text
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  const instructions = lines.slice(lines.findLastIndex((line) => line.startsWith("FROM ")) + 1);
  const after = (keyword: string): string =>
    instructions
      .find((line) => line.startsWith(keyword))
      ?.slice(keyword.length)
      .trim() ?? "";
  return {
    instructions,
    entrypoint: JSON.parse(after("ENTRYPOINT ")) as string[],
    healthcheck: JSON.parse(after("HEALTHCHECK ").replace(/^.*?CMD /, "")) as string[],
    user: after("USER "),
  };
}

/**
 * Copies to `root` exactly what the final stage copies, from the same build as the Dockerfile's, and puts this Node
 * where the base image has its own. Everything is readable by all users and writable by none.
 * @param scratch an empty directory for the build.
 */
export async function layOutImage(stage: FinalStage, root: string, scratch: string): Promise<void> {
  const stages = { build: join(scratch, "build"), context: REPOSITORY };
  await buildInto(join(stages.build, "dist"));

  let workingDirectory = "/";
  for (const instruction of stage.instructions) {
    const [keyword, ...words] = instruction.split(/\s+/);
    if (keyword === "WORKDIR") {
      workingDirectory = resolve(workingDirectory, words[0] ?? "");
    }
    if (keyword === "COPY") {
      const from = stageOf(words[0]);
      const [target = "", ...sources] = words.filter((word) => !word.startsWith("--")).toReversed();
      const into = join(root, resolve(workingDirectory, target));
      for (const source of sources) {
        // In a build stage everything is below its WORKDIR, /src.
        const path = join(stages[from], source.replace(/^\/src\//, ""));
        await cp(path, target.endsWith("/") ? join(into, basename(source)) : into, {
          recursive: true,
          verbatimSymlinks: true,
        });
      }
    }
  }
  const node = join(root, stage.entrypoint[0] ?? "");
  await mkdir(dirname(node), { recursive: true });
  await copyFile(process.execPath, node);
  await chmod(node, 0o555);
  await run("chmod", ["-R", "a+rX,a-w", root]);
}

function stageOf(flag: string | undefined): "build" | "context" {
  return flag === "--from=build" ? "build" : "context";
}
