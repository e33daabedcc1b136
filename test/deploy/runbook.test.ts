/** The runbook has an entry for every error message of Sallyport; the lists come from the source. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { ERRORS } from "../../src/core/request/errors.ts";
import {
  AUTH_REASONS,
  STREAM_ENDS,
  REFUSAL_REASONS,
  UPSTREAM_ERROR_REASONS,
} from "../../src/core/request/outcome.ts";
import { createLog } from "../../src/observe/log/application-log.ts";
import { command } from "../cli/command.ts";
import { deployment } from "../cli/deployment.ts";
import { codesIn, ROOT } from "../docs/markdown.ts";
import { keptLines } from "../observe/kept-lines.ts";
import { alertEntries, entries, linkTo, messageEntries, runbook } from "./runbook-entries.ts";

const source = (pattern: string): string =>
  globSync(pattern, { cwd: ROOT })
    .map((name) => readFileSync(join(ROOT, name), "utf8"))
    .join("\n");
const everything = source("src/**/*.ts");

const REASONS = ["`reason`", "means, and where to look", "do"];

test.each([...alertEntries, ...messageEntries])(
  "$heading: the meaning, then where to look, unless the line says all, and what to do",
  ({ text }) => {
    const points = text.trim().split("\n\n");
    const words = points.map((point) => /^\*\*(\w+):\*\* \S/.exec(point)?.[1] ?? "Means");
    expect([
      ["Means", "Look", "Do"],
      ["Means", "Do"],
    ]).toContainEqual(words);
  },
);

test("every reason has a meaning, and something to do", () => {
  const cells = runbook.rows(...REASONS).flatMap(Object.values);
  expect(cells).not.toContain("");
});

test("every link leads to a heading, and headings are unique", () => {
  const headings = [...runbook.text.matchAll(/^#{1,6} (.+)$/gm)].map(([, text = ""]) =>
    linkTo(text),
  );
  expect(new Set(headings).size).toBe(headings.length);
  const links = [...runbook.text.matchAll(/\]\((#[^)]+)\)|`(docs\/runbook\.md#[\w-]+)`/g)];
  expect(links.length).toBeGreaterThan(30);
  for (const [, near, far] of links) expect(headings).toContain(far ?? `docs/runbook.md${near}`);
});

describe("errors that clients get", () => {
  const explained = runbook.rows(...REASONS).flatMap((row) => codesIn(row["`reason`"]));
  const unreadable = runbook
    .rows("`reason`", "what is wrong")
    .flatMap((row) => codesIn(row["`reason`"]));

  it("all have a row, in the order of the table", () => {
    expect(explained.filter((word) => word in ERRORS)).toEqual(Object.keys(ERRORS));
  });

  it("have a row for every reason in the log, and only one", () => {
    // The words of the type that follow from no others.
    const [, type = ""] = /^export type Reason =\n(.*?);$/ms.exec(everything) ?? [];
    const typed = [...type.replaceAll(/`[^`]*`/g, "").matchAll(/"(\w+)"/g)];
    const literal = [
      ...everything.matchAll(/GateError\(\s*"\w+",\s*\{[^}]*\breason: "(\w+)"/g),
      ...everything.matchAll(/\bfailed\("(sign_in_\w+)"/g),
    ];
    const made = [...everything.matchAll(/\b(ambiguous|busy|unavailable)\("(\w+)"/g)].map(
      ([, maker, word = ""]) => (maker === "ambiguous" ? `ambiguous_${word}` : word),
    );
    const broken = [
      ...everything.matchAll(/abortReason (?:\?\?)?= [^;]*?"(\w+)"/g),
      ...everything.matchAll(/\bcut\([\w.]+, "(\w+)"/g),
    ];
    const parser = [...everything.matchAll(/\bHPE_\w+: "(\w+)"/g)];
    const throttled = [...everything.matchAll(/: "(throttled\w*)"/g)];
    const counts = [typed, literal, made, throttled, parser].map(({ length }) => length > 3);
    expect(counts).toEqual([true, true, true, true, true]);
    const logged = new Set<string>([
      ...[...typed, ...literal, ...throttled, ...broken, ...parser].map(([, word = ""]) => word),
      ...made,
      ...AUTH_REASONS,
      ...STREAM_ENDS,
      ...UPSTREAM_ERROR_REASONS,
    ]);
    const documented = [...explained, ...unreadable];
    const found = new Set(documented);
    expect(documented).toHaveLength(found.size);
    expect([...logged].filter((word) => word !== "ok" && !found.has(word))).toEqual([]);
    // No row is obsolete.
    expect(documented.filter((word) => !logged.has(word) && !(word in ERRORS))).toEqual([]);
  });

  it("are mentioned if they are counted before there is a request", () => {
    expect(REFUSAL_REASONS.filter((word) => !runbook.text.includes(`\`${word}\``))).toEqual([]);
  });
});

describe("messages of the log", () => {
  const CALL = /\blog(?:\.(?:warn|error)|\[[^\]]*\])\(/g;
  const SAID = new RegExp(`${CALL.source}\\s*(["'\`])(.*?)\\1`, "g");
  const calls = [...everything.matchAll(CALL)];
  const said = [...everything.matchAll(SAID)].map(([, , message = ""]) => message);
  const written = [...everything.matchAll(/"level":"(?:warn|error)","msg":"([^"]+)"/g)];
  const headings = [...said, ...written.map(([, message = ""]) => message)].map(
    (message) => message.split(":", 1)[0] ?? "",
  );

  it("exist in the source", () => {
    expect(said).toHaveLength(calls.length);
    expect(said.length).toBeGreaterThan(15);
    expect(written.length).toBeGreaterThan(0);
  });

  it("all have an entry, and no others", () => {
    const documented = messageEntries.map(({ heading }) => heading);
    expect(documented.toSorted()).toEqual([...new Set(headings)].toSorted());
  });

  it.each(said)("%s: the line refers to its entry", (message) => {
    const { sink, lines } = keptLines();
    createLog({ sink, level: "info" }).error(message, { see: "elsewhere" });
    const line = JSON.parse(lines[0] ?? "{}") as Record<string, unknown>;
    expect(line).toMatchObject({ see: linkTo(message.split(":", 1)[0] ?? ""), see_: "elsewhere" });
  });

  it("refer to no entry at info and debug", () => {
    const { sink, lines } = keptLines();
    const log = createLog({ sink, level: "debug" });
    log.info("listening");
    log.debug("more");
    expect(lines.map((line) => "see" in (JSON.parse(line) as object))).toEqual([false, false]);
  });
});

describe("refusals to start", () => {
  const PLACES = [
    "src/app/{from-files,gate/sign-ins,gate/key-stores}.ts",
    "src/core/positioned-file.ts",
    "src/cli/serving/serve.ts",
    "src/config/**/*.ts",
    // All but new-hash.ts, which refuses passwords, not starts.
    "src/credentials/hashing/[!n]*.ts",
    "src/credentials/stores/{file-user-store,htpasswd,users-file,users-reading}.ts",
    "src/credentials/stores/{remote/store-access,sql/sqlite-store,ldap/ldap-store}.ts",
    "src/lib/files/positioned-yaml.ts",
    "src/server/tls/{certificate,tls-listener}.ts",
    "src/tokens/api-keys/api-key-file.ts",
    "src/tokens/keys/{key-directory,watched-keys}.ts",
    "src/tokens/revocation/{journal,revocation-service,revocation-kinds}.ts",
    "src/tokens/trusted/trusted-keys.ts",
  ];
  /** Warnings, titles and parts of messages: types, positions, suggestions, and the end of `this is not a usable key: …`. */
  const PARTS =
    /^(?:did you mean|put it in (?:quotes|brackets)|leave the path out|a list$|true or false|a whole number|a mapping of|the configuration$|Sallyport configuration|environment variable|flag | from \$\{said|the file$|a user$|an API key$|not a regular file|larger than|\$\{path\} is not of|it cannot be read|unknown error|the route \$|\$\{method\}|is public$|needs no token$|refuses nobody|needs a \$|rewrite to a path|choose a host |if this is intended|%2A|write |for this one path|exact takes one| \(kind \$|the certificate$|certificate \$\{index \+ 1\} of \$\{chain|\$\{name\} (?:is not issued|is not valid before|expired on|ends in)|or the directory hides|no entry below|there are no entries yet|the store is closed|an earlier query|a regular expression goes|a path is a prefix|make one with|name it with|in \$\{process|users: \{ NAME|chmod |add a private key|a key verifies what it signs|The issuer \$\{each|error \$\{error|stops at once|\$\{directory\}: |choose another with|is taken by another|is not an address of|cannot be listened on|\$\{file\}: |: write |Users (?:in|of) a|Users in P|Keys in )/;
  /** One hint, and the hints of a store by the failure. */
  const HINTS = /\bhint:\s*"[^"]*"|^( *)(?:const LDAP_HINTS\b.*?=|hints:) \[\n.*?^\1\][,;]$/gms;
  const documented = runbook.rows("message", "do").flatMap((row) => codesIn(row["message"]));

  it("are created only in the files searched here", () => {
    const known = globSync(PLACES, { cwd: ROOT });
    const made = globSync("src/**/*.ts", { cwd: ROOT }).filter((name) =>
      /new ConfigError\(\[/.test(readFileSync(join(ROOT, name), "utf8")),
    );
    // `token mint` starts nothing.
    expect(made.filter((name) => !known.includes(name))).toEqual(["src/cli/token.ts"]);
  });

  it("all have a row, and no others", () => {
    const messages = globSync(PLACES, { cwd: ROOT, exclude: ["**/usual-mistakes.ts"] })
      // Hints are not refusals: those of a store belong to doctor.
      .flatMap((name) => sentences(source(name).replaceAll(HINTS, "")))
      .filter((text) => !PARTS.test(text));
    expect(messages.length).toBeGreaterThan(100);
    expect(messages.filter((text) => !documented.some((row) => covers(row, text)))).toEqual([]);
    expect(documented.filter((row) => !messages.some((text) => covers(row, text)))).toEqual([]);
  });

  it.each([
    ["It is not YAML", "config.yaml", "server: {}\nserver: {}\n"],
    ["A key or a value is not right", "config.yaml", "sever: {}\n"],
    ["Values do not go together", "config.yaml", "routes: [{ name: a, exact: /, path: / }]\n"],
    ["A reference or a variable sets nothing", "config.yaml", "admin: { listen: '${NOT_SET}' }\n"],
    ["The users file is not valid", "users.yaml", "users: { alice: { password: secret } }\n"],
    ["The certificate or its key is not valid", "tls.crt", "nothing\n"],
    ["The signing keys are not valid", "keys/one.pem", "nothing\n"],
  ])("%s: seen in %s", async (heading, name, content) => {
    const broken = await deployment();
    await broken.write(name, content);
    const { code, out } = await command(["check", "--format", "json", ...broken.flags]);
    const { problems } = JSON.parse(out) as { problems: { message: string }[] };
    const text = entries("It does not start").find((entry) => entry.heading === heading)?.text;
    const rows = codesIn(text);
    expect(code).toBe(78);
    expect(
      problems.filter(({ message }) => rows.some((row) => covers(`…${row}`, message))),
    ).not.toEqual([]);
  });
});

/** Returns whether a row's message, in which `…` stands for any text, is this one. */
function covers(row: string, message: string): boolean {
  const pattern = row.split("…").map((piece) => piece.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${pattern.join(".*")}$`, "s").test(message);
}

/**
 * Returns the texts of more than one word in a source file, without comments, descriptions of keys, log messages, and why a text is no key.
 */
function sentences(text: string): string[] {
  const LITERAL = `(["'\`])(?:(?!\\1).)*\\1`;
  const code = text
    .replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "")
    .replaceAll(
      new RegExp(
        `(?:\\.describe|\\b(?:settings|mapping|optional|optionalMapping)|KeyFormatError|\\blog\\.\\w+)\\(\\s*${LITERAL}`,
        "gs",
      ),
      "",
    );
  return [...code.matchAll(/"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\\n]|\\.)*)`/g)]
    .map(([, plain, template]) => plain ?? template ?? "")
    .filter((literal) => /[a-z] [a-zA-Z0-9$]|[a-z]: /.test(literal));
}
