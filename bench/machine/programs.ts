import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { delimiter, join } from "node:path";
import { run } from "./children.ts";

/** Where Debian's packages install servers, in addition to the search path. */
const FURTHER = ["/usr/sbin", "/usr/local/sbin"];

/** Returns the path of a program; undefined if it is not installed. */
export function findProgram(name: string): string | undefined {
  const directories = [...(process.env["PATH"] ?? "").split(delimiter), ...FURTHER];
  return directories.map((directory) => join(directory, name)).find(isExecutable);
}

/** Returns the path of a program. Throws an error that names its package if it is not installed. */
export function needProgram(name: string): string {
  const found = findProgram(name);
  if (found === undefined) throw new Error(`${name} is not installed (apt-get install ${name})`);
  return found;
}

/** Returns which of these programs are not installed, as text; undefined if all are. */
export function missingPrograms(...names: readonly string[]): string | undefined {
  const missing = names.filter((name) => findProgram(name) === undefined);
  return missing.length === 0 ? undefined : `not installed: ${missing.join(", ")}`;
}

/** Whether a package is installed in the benchmark's own `node_modules`. */
export function hasPackage(name: string): boolean {
  return existsSync(packageFile(name));
}

/** Returns the version of a package in the benchmark's own `node_modules`. */
export function packageVersion(name: string): string {
  const parsed: unknown = JSON.parse(readFileSync(packageFile(name), "utf8"));
  const found = typeof parsed === "object" && parsed !== null && "version" in parsed;
  return found ? String(parsed.version) : "unknown";
}

/** The machine on which the figures were measured. */
export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  /** Versions by program. */
  readonly versions: Readonly<Record<string, string>>;
}

const VERSION_FLAGS = {
  wrk: "-v",
  nginx: "-v",
  haproxy: "-v",
  caddy: "version",
  curl: "--version",
  traefik: "version",
  envoy: "--version",
  oha: "--version",
  h2load: "--version",
} as const;

export async function describeMachine(): Promise<Machine> {
  const versions: Record<string, string> = { node: process.versions.node };
  for (const [name, flag] of Object.entries(VERSION_FLAGS)) {
    const program = findProgram(name);
    if (program === undefined) continue;
    // nginx prints its version to standard error; wrk prints it and fails.
    const printed = await run("/bin/sh", ["-c", '"$0" "$1" 2>&1 || true', program, flag]);
    // Envoy prints its commit first, which may look like a version.
    versions[name] = /(?<![\w.])v?(\d+(?:\.\d+)+(?:-dev\d+)?)/.exec(printed)?.[1] ?? "unknown";
  }
  return {
    processor: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    versions,
  };
}

function packageFile(name: string): string {
  return join(import.meta.dirname, "../node_modules", name, "package.json");
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
