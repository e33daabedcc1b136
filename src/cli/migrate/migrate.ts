import { readFileSync } from "node:fs";
import { text as textOf } from "node:stream/consumers";
import { Document, isMap, isScalar, isSeq, visit } from "yaml";
import { pathName } from "../../config/written.ts";
import { validate } from "../../config/validate.ts";
import { codeOrMessage } from "../../lib/text/error-code.ts";
import { printable } from "../../lib/text/printable.ts";
import { parseFlags } from "../arguments.ts";
import { type Command, EXIT, type Terminal, UsageError } from "../command.ts";
import { formatFrom, type Marks, marksFor } from "../terminal/format.ts";
import { fromKubeRbacProxy } from "./kube-rbac-proxy.ts";
import type { Draft, Migration, ReportLine, Sources } from "./migration.ts";
import { fromNginx } from "./nginx.ts";
import { fromOauth2Proxy } from "./oauth2-proxy.ts";

const KINDS = ["oauth2-proxy", "kube-rbac-proxy", "nginx"] as const;

const TRANSLATORS: Readonly<Record<(typeof KINDS)[number], (sources: Sources) => Migration>> = {
  "oauth2-proxy": fromOauth2Proxy,
  "kube-rbac-proxy": fromKubeRbacProxy,
  nginx: fromNginx,
};

export const migrate: Command = {
  help: `Usage: sallyport migrate --from PROXY [options]

Translates the configuration of another proxy. Prints config.yaml on standard output, and on standard error
which settings carry over, which ones change, and which ones do not carry over and why. Secrets are neither
read nor printed. The guides in docs/migration describe the other steps.

      --from oauth2-proxy|kube-rbac-proxy|nginx
                            the proxy (nginx with auth_request)
      --file FILE           its configuration file; for kube-rbac-proxy a manifest; - for standard input
      --flags 'FLAGS'       its command line; wins over the file
      --format text|json    default: text; json writes configuration and report to standard output
      --strict              exit code 1 if a setting does not carry over
  -h, --help                this text

For oauth2-proxy, the environment variables OAUTH2_PROXY_… are read, too.`,
  async run(args, terminal) {
    const text = { type: "string" } as const;
    const flags = parseFlags(joined(args), {
      from: text,
      file: text,
      flags: text,
      format: text,
      strict: { type: "boolean" },
    });
    if (flags.from === undefined) throw new UsageError("--from is missing");
    const kind = formatFrom(flags.from, KINDS, "--from");
    const format = formatFrom(flags.format, ["text", "json"]);
    const file = flags.file === undefined ? undefined : await read(flags.file, terminal);
    const sources = { file, flags: flags.flags, env: terminal.env };
    const migration = TRANSLATORS[kind](sources);
    reportRefusals(migration, terminal);
    const { configuration, report } = migration;
    if (format === "json") {
      terminal.out(`${JSON.stringify({ configuration, report }, undefined, 2)}\n`);
    } else {
      terminal.out(configurationText(configuration, kind));
      terminal.err(reportText(report, marksFor(terminal)));
    }
    const lost = report.some(({ result }) => result === "lost");
    return flags.strict === true && lost ? EXIT.failed : EXIT.done;
  },
};

/**
 * Reports what `check` will refuse in the translated configuration: what the other proxy allows is sometimes a way around
 * its own protection, which only the operator can close.
 */
function reportRefusals(to: Migration, { env }: Terminal): void {
  const written: unknown = JSON.parse(JSON.stringify(to.configuration));
  const { problems } = validate(written, [], { env, directory: process.cwd() });
  for (const { path, message, hint } of problems) {
    const more = hint === undefined ? "" : ` (${hint})`;
    to.changed(pathName(path), `sallyport check refuses this: ${message}${more}`);
  }
}

/** The value of `--flags` begins with a dash itself, so the parser needs the form `--flags=…`. */
function joined(args: readonly string[]): string[] {
  const at = args.indexOf("--flags");
  if (at < 0 || args[at + 1] === undefined) return [...args];
  return [...args.slice(0, at), `--flags=${args[at + 1]}`, ...args.slice(at + 2)];
}

async function read(file: string, terminal: Terminal): Promise<string> {
  try {
    return file === "-" ? await textOf(terminal.input) : readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${codeOrMessage(error)}`);
  }
}

const TITLES = {
  carried: "Carries over",
  changed: "Changed: review these",
  lost: "Does not carry over",
} as const;

function reportText(report: readonly ReportLine[], marks: Marks): string {
  const signs = { carried: marks.good, changed: marks.warning, lost: marks.bad } as const;
  const width = Math.min(56, Math.max(...report.map(({ setting }) => setting.length)));
  const sections = (["carried", "changed", "lost"] as const).flatMap((result) => {
    const lines = report.filter((line) => line.result === result);
    if (lines.length === 0) return [];
    const shown = lines.map(({ setting, words }) =>
      printable(`  ${signs[result]} ${setting.padEnd(width)}  ${words}`),
    );
    return [[TITLES[result], ...shown].join("\n")];
  });
  return `${sections.join("\n\n")}\n\nNext: sallyport check --config config.yaml\n`;
}

/** Maximum length of a collection on one line, in characters of JSON. */
const SHORT = 76;

/** Renders a configuration as YAML, with short collections on one line and blank lines between sections. */
function configurationText(draft: Draft, from: string): string {
  const { server, admin, users, tokens, identity, routes, upstreams, log } = draft;
  const ordered = { server, admin, users, tokens, identity, routes, upstreams, log };
  const sections = Object.entries(ordered).filter(
    ([, value]) => value !== undefined && JSON.stringify(value) !== "{}",
  );
  const document = new Document(Object.fromEntries(sections), { aliasDuplicateObjects: false });
  visit(document, {
    Collection(_key, node, path) {
      if (path.length > 2 && JSON.stringify(node.toJSON()).length <= SHORT) node.flow = true;
    },
  });
  if (isMap(document.contents)) {
    for (const [index, { key, value }] of document.contents.items.entries()) {
      if (!isScalar(key)) continue;
      if (index > 0) key.spaceBefore = true;
      if (isSeq(value) || (isMap(value) && key.value === "upstreams")) value.flow = false;
    }
  }
  document.commentBefore = ` Made by sallyport migrate --from ${from}. Read its report, then run sallyport check.`;
  return document.toString({ lineWidth: 0, flowCollectionPadding: true });
}
