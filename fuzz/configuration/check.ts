import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { run } from "../../src/cli/run.ts";
import type { WrittenConfiguration } from "../generate/configurations.ts";
import { type Fault, fault } from "../judge/fault.ts";
import { show } from "../judge/forwarded.ts";
import type { Played } from "../search/stage.ts";

/** `sallyport check` over generated configurations, in this process. */
export interface ConfigurationCheck extends AsyncDisposable {
  play(written: WrittenConfiguration): Promise<Played>;
  playAlone(written: WrittenConfiguration): Promise<readonly Fault[]>;
}

/** The maximum time of one check, in milliseconds: all inputs are small, but the machine is busy. */
const LONGEST_MS = 10_000;

const VALID = 0;
const WRONG_USAGE = 2;
const INVALID = 78;

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly elapsed: number;
}

export async function configurationCheck(): Promise<ConfigurationCheck> {
  const directory = await temporaryDirectory();
  let count = 0;
  const faultsOf = async (written: WrittenConfiguration): Promise<Fault[]> => {
    count += 1;
    const file = join(directory.path, `config-${count % 64}.yaml`);
    await writeFile(file, Buffer.from(written.text, written.encoding));
    const flags = written.overrides.flatMap((each) => ["--set", each]);
    const asked = ["check", "--config", file, ...flags];
    const [asText, asJson] = [
      await ended(asked, written.env),
      await ended([...asked, "--format", "json"], written.env),
    ];
    return [...judgeText(asText), ...judgeJson(asJson, file), ...judgeBoth(asText, asJson)];
  };
  return {
    async play(written) {
      const faults = await faultsOf(written);
      return {
        verdict: () => ({ faults, forwarded: 0, refused: 0 }),
        afterwards: () => [],
      };
    },
    playAlone: faultsOf,
    [Symbol.asyncDispose]: () => directory.close(),
  };
}

async function ended(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Ended> {
  let out = "";
  let err = "";
  const started = performance.now();
  try {
    const code = await run(args, {
      env,
      input: new PassThrough().end(),
      out: (text) => void (out += text),
      err: (text) => void (err += text),
      handedOver: () => Promise.resolve(),
    });
    return { code, out, err, elapsed: performance.now() - started };
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { code: -1, out, err: text, elapsed: performance.now() - started };
  }
}

function wrong(detail: string): Fault {
  return fault("configuration", detail);
}

function judgeText({ code, out, err, elapsed }: Ended): Fault[] {
  const faults: Fault[] = [];
  if (![VALID, WRONG_USAGE, INVALID].includes(code))
    faults.push(wrong(`exit ${code}: ${show(err)}`));
  if (/^ {4}at .*[:)]/m.test(out + err)) faults.push(wrong(`a stack: ${show(err)}`));
  if (code === INVALID && !/:/.test(err)) faults.push(wrong(`78 without a reason: ${show(err)}`));
  if (elapsed > LONGEST_MS) faults.push(wrong(`took ${Math.round(elapsed)} ms`));
  return faults;
}

function judgeBoth(asText: Ended, asJson: Ended): Fault[] {
  if (asText.code === asJson.code) return [];
  return [wrong(`exit ${asText.code} as text, ${asJson.code} as JSON`)];
}

/** Checks that every problem is reported with its position, or with the flag or variable that it comes from. */
function judgeJson({ code, out, err }: Ended, file: string): Fault[] {
  if (code === WRONG_USAGE) return [];
  let report: unknown;
  try {
    report = JSON.parse(out);
  } catch {
    return [wrong(`exit ${code}, no JSON: ${show(out)} ${show(err)}`)];
  }
  if (!isVerdict(report)) return [wrong(`no verdict: ${show(out)}`)];
  const faults = report.problems
    .filter((problem) => !isPlaced(problem, file))
    .map((problem) => wrong(`a problem without place: ${show(JSON.stringify(problem))}`));
  const right =
    code === VALID ? report.valid && report.problems.length === 0 : report.problems.length > 0;
  return right ? faults : [...faults, wrong(`exit ${code} with ${show(out)}`)];
}

interface ReportedProblem {
  readonly file?: unknown;
  readonly line?: unknown;
  readonly column?: unknown;
  readonly message?: unknown;
}

function isVerdict(value: unknown): value is { valid: boolean; problems: ReportedProblem[] } {
  return (
    typeof value === "object" &&
    value !== null &&
    "valid" in value &&
    typeof value.valid === "boolean" &&
    "problems" in value &&
    Array.isArray(value.problems)
  );
}

/** Problems of the whole file, which have no place in it. */
const ABOUT_THE_FILE = new Set(["the file is not UTF-8 text", "the file is empty"]);

function isPlaced(problem: ReportedProblem, file: string): boolean {
  if (typeof problem.message !== "string" || problem.message === "") return false;
  if (problem.file !== file) return typeof problem.file === "string";
  if (ABOUT_THE_FILE.has(problem.message)) return true;
  return [problem.line, problem.column].every(
    (each) => Number.isInteger(each) && Number(each) >= 1,
  );
}
