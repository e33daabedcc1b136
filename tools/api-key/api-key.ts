import { type FileHandle, open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { isMap, parseDocument } from "yaml";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  durationFlag,
  parseFlags,
} from "../../src/cli/arguments.ts";
import { type Command, EXIT, type Terminal, UsageError } from "../../src/cli/command.ts";
import { loadConfiguration } from "../../src/config/load.ts";
import { systemCode } from "../../src/lib/text/error-code.ts";
import { isJsonObject, jsonObjectIn } from "../../src/lib/text/strict-json.ts";
import {
  isApiKeyName,
  isScope,
  newApiKey,
  readApiKeys,
} from "../../src/tokens/api-keys/api-key-file.ts";

const DAY_MS = 86_400_000;
const DAYS = /^(\d{1,5})d$/;

const text = { type: "string" } as const;

export const apiKey: Command = {
  help: `Usage: sallyport api-key create NAME [options]

Makes an API key, adds its hash to the file of keys, and prints the key, which is shown this once. A running
Sallyport accepts it at once, on routes whose tokenFrom has apiKey. To end a key, set disabled: true in the file,
or remove it there.

      --groups A,B          groups of the caller
      --scopes A,B          scopes of the caller
      --subject SUBJECT     who the caller is (default: the name)
      --expires D           end of the key: 90d, 12h (default: never)
  -f, --file FILE           the file (default: that of apiKeys in the configuration)
${CONFIGURATION_HELP}
  -h, --help                this text`,
  async run(args, terminal) {
    const [action = "", name = "", ...rest] = args;
    if (action !== "create" || name === "" || name.startsWith("-")) {
      const said = action === "" || action === "create" ? name : action;
      throw new UsageError(`needs create and the name of the key${said && `, not ${said}`}`);
    }
    const flags = parseFlags(rest, {
      ...CONFIGURATION_FLAGS,
      groups: text,
      scopes: text,
      subject: text,
      expires: text,
      file: { ...text, short: "f" },
    });
    if (!isApiKeyName(name)) {
      throw new UsageError("the name of a key has 1 to 63 letters, digits, . _ and -");
    }
    const file = flags.file ?? configuredFile(flags, terminal);
    const { key, hash } = newApiKey(name);
    const scopes = listIn(flags.scopes);
    if (!scopes.every(isScope)) throw new UsageError("--scopes needs scopes, separated by commas");
    const groups = listIn(flags.groups);
    await addTo(file, name, {
      hash,
      ...(flags.subject === undefined ? {} : { subject: flags.subject }),
      ...(groups.length === 0 ? {} : { groups }),
      ...(scopes.length === 0 ? {} : { scopes }),
      ...(flags.expires === undefined ? {} : { expires: timeIn(expiresIn(flags.expires)) }),
      created: timeIn(0),
    });
    terminal.err(`added ${name} to ${file}; the key is shown this once:\n`);
    terminal.out(`${key}\n`);
    return EXIT.done;
  },
};

function configuredFile(
  flags: Parameters<typeof configurationSources>[0],
  terminal: Terminal,
): string {
  const { apiKeys } = loadConfiguration(configurationSources(flags, terminal)).configuration;
  const store = apiKeys.find(({ kind }) => kind === "file");
  if (store?.kind !== "file") {
    throw new UsageError("the configuration names no file in apiKeys; name one with --file");
  }
  return store.path;
}

/**
 * Adds an entry, and leaves the rest of the file as it is, with its comments, its mode and its owner. The draft is taken before
 * the file is read, so that no other addition is lost.
 */
async function addTo(named: string, name: string, entry: object): Promise<void> {
  const file = await realpath(named).catch(() => named);
  const draft = `${file}.new`;
  await using handle = await taken(draft);
  try {
    const before = await contentOf(file);
    if (before !== undefined) {
      const known = readApiKeys(Buffer.from(before), file);
      if (known.some((each) => each.name === name)) {
        throw new UsageError(`${file} has a key named ${name} already`);
      }
      const { mode, uid, gid } = await stat(file);
      await handle.chmod(mode & 0o777);
      await handle.chown(uid, gid);
    }
    const after = withKey(before ?? "keys: {}\n", name, entry);
    // What it would refuse, it must not write.
    readApiKeys(Buffer.from(after), file);
    await handle.writeFile(after);
    await handle.sync();
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Returns the text of a file with another key, in the syntax that it has: JSON stays JSON. */
function withKey(before: string, name: string, entry: object): string {
  const json = jsonObjectIn(before);
  if (json !== undefined) {
    const keys = { ...(isJsonObject(json["keys"]) ? json["keys"] : {}), [name]: entry };
    return `${JSON.stringify({ ...json, keys }, undefined, 2)}\n`;
  }
  const document = parseDocument(before);
  const keys = document.get("keys");
  // The flow style of an empty mapping would put each further key on one line.
  if (isMap(keys)) keys.flow = false;
  else document.set("keys", document.createNode({}));
  document.setIn(["keys", name], document.createNode(entry));
  return document.toString({ lineWidth: 0 });
}

async function taken(draft: string): Promise<FileHandle> {
  try {
    return await open(draft, "wx", 0o600);
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
    const what = "another `api-key create` runs, or was interrupted: try again, or remove it";
    throw new UsageError(`${draft} exists: ${what}`);
  }
}

/** Returns the text of a file; undefined if there is none. */
async function contentOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

function listIn(given: string | undefined): string[] {
  return (given ?? "").split(",").filter((each) => each !== "");
}

/** Returns milliseconds. */
function expiresIn(given: string): number {
  const [, days] = DAYS.exec(given) ?? [];
  return days === undefined ? durationFlag("expires", given, 1) : Number(days) * DAY_MS;
}

function timeIn(ms: number): string {
  return new Date(Date.now() + ms).toISOString().replace(/\.\d+Z$/, "Z");
}
