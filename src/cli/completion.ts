import { parseFlags } from "./arguments.ts";
import { type Command, EXIT, UsageError } from "./command.ts";
import { formatFrom } from "./terminal/format.ts";

/**
 * Creates the command that prints completion scripts.
 *
 * @param commands the names of all commands.
 * @param helpOf gives the help text of a command: its sub-commands, options and their values are completed.
 */
export function createCompletion(
  commands: readonly string[],
  helpOf: (name: string) => Promise<string>,
): Command {
  return {
    help: `Usage: sallyport completion bash|zsh|fish

Prints a completion script for bash, zsh or fish. For example, in ~/.bashrc: source <(sallyport completion bash)

      --shell bash|zsh|fish the same
  -h, --help                this text`,
    async run(args, terminal) {
      const [word = "", ...more] = args;
      const isShell = word !== "" && !word.startsWith("-") && more.length === 0;
      const shell = isShell ? word : parseFlags(args, { shell: { type: "string" } }).shell;
      if (shell === undefined) throw new UsageError("say which shell: bash, zsh or fish");
      const kind = formatFrom(shell, ["bash", "zsh", "fish"], "--shell");
      const known = await Promise.all(
        commands.map(async (name) => describedBy(name, await helpOf(name))),
      );
      terminal.out(SCRIPTS[kind]([...known, { name: "help", words: commands, flags: [] }]));
      return EXIT.done;
    },
  };
}

/** What can follow a command. */
interface Described {
  readonly name: string;
  /** Words in the place of the first argument, such as sub-commands. */
  readonly words: readonly string[];
  readonly flags: readonly Flag[];
}

interface Flag {
  readonly long: string;
  readonly short: string | undefined;
  /** What its value is: a path, one of these words, any text, or none. */
  readonly value: "path" | "text" | "none" | readonly string[];
}

/** `rotate` or `bash|zsh|fish` after the name of the command in a line of its usage. */
const USAGE = (name: string) => new RegExp(`sallyport ${name} ([a-z][a-z|]*)`, "g");
/** `-c, --config FILE`, `--format text|json`, `--strict`: an option with its placeholder. */
const OPTION = /^ {2,6}(?:(-\w), )?(--[a-z-]+)(?: ('?[A-Z][A-Z:]*|[a-z0-9-]+(?:\|[a-z0-9-]+)+))?/gm;
const PATHS = ["FILE", "DIR"];

/** Reads the help text of a command. */
function describedBy(name: string, help: string): Described {
  const usage = /^Usage:.*\n(?: +sallyport.*\n)*/.exec(help)?.[0] ?? "";
  const words = Array.from(usage.matchAll(USAGE(name)), ([, word = ""]) => word.split("|"));
  const flags = new Map<string, Flag>();
  for (const [, short, long = "", placeholder] of help.matchAll(OPTION)) {
    flags.set(long, { long, short, value: valueOf(placeholder) });
  }
  return { name, words: words.flat(), flags: [...flags.values()] };
}

function valueOf(placeholder: string | undefined): Flag["value"] {
  if (placeholder === undefined) return "none";
  if (PATHS.includes(placeholder)) return "path";
  return placeholder.includes("|") ? placeholder.split("|") : "text";
}

type Script = (commands: readonly Described[]) => string;

const SCRIPTS: Record<"bash" | "zsh" | "fish", Script> = {
  // Where nothing is offered, `-o default` offers files.
  bash: (commands) => `_sallyport() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}"
  if [ "$word" = "=" ]; then word=""; elif [ "$before" = "=" ]; then before="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${names(commands)}" -- "$word"))
    return
  fi
  case "\${COMP_WORDS[1]} $before" in
${valueCases(commands, {
  path: "return",
  text: "compopt +o default; return",
  words: (words) => `COMPREPLY=($(compgen -W "${words}" -- "$word")); return`,
})}
  esac
  case "\${COMP_WORDS[1]}:$COMP_CWORD:$word" in
${commands
  .filter(({ words }) => words.length > 0)
  .map(
    ({ name, words }) =>
      `    ${name}:2:[!-]*|${name}:2:) COMPREPLY=($(compgen -W "${words.join(" ")}" -- "$word")); return ;;`,
  )
  .join("\n")}
  esac
  case "\${COMP_WORDS[1]}" in
${optionCases(commands, (flags) => `COMPREPLY=($(compgen -W "${flags}" -- "$word"))`)}
  esac
}
complete -o default -F _sallyport sallyport
`,
  zsh: (commands) => `#compdef sallyport
_sallyport() {
  if (( CURRENT == 2 )); then
    compadd -- ${names(commands)}
    return
  fi
  case "\${words[2]} \${words[CURRENT-1]}" in
${valueCases(commands, {
  path: "_files; return",
  text: "return",
  words: (words) => `compadd -- ${words}; return`,
})}
  esac
  if (( CURRENT == 3 )); then
    case "\${words[2]}" in
${commands
  .filter(({ words }) => words.length > 0)
  .map(({ name, words }) => `      ${name}) compadd -- ${words.join(" ")} ;;`)
  .join("\n")}
    esac
  fi
  case "\${words[2]}" in
${optionCases(commands, (flags) => `compadd -- ${flags}`)}
  esac
}
compdef _sallyport sallyport
`,
  fish: (commands) =>
    [
      "complete -c sallyport -f",
      `complete -c sallyport -n __fish_use_subcommand -a "${names(commands)}"`,
      ...commands.flatMap(({ name, words, flags }) => {
        const seen = `__fish_seen_subcommand_from ${name}`;
        const first = `${seen}; and test (count (commandline -opc)) -eq 2`;
        return [
          ...(words.length === 0
            ? []
            : [`complete -c sallyport -n "${first}" -a "${words.join(" ")}"`]),
          ...flags.map(({ long, short, value }) => {
            const named = `-l ${long.slice(2)}${short === undefined ? "" : ` -s ${short.slice(1)}`}`;
            return `complete -c sallyport -n "${seen}" ${named}${FISH_VALUES(value)}`;
          }),
        ];
      }),
      "",
    ].join("\n"),
};

/** Says what fish offers as the value of an option. */
const FISH_VALUES = (value: Flag["value"]): string => {
  if (value === "none") return "";
  if (value === "path") return " -r -F";
  return value === "text" ? " -x" : ` -x -a "${value.join(" ")}"`;
};

function names(commands: readonly Described[]): string {
  return commands.map(({ name }) => name).join(" ");
}

/** What a shell does for each kind of value. */
interface ValueActions {
  readonly path: string;
  readonly text: string;
  words(words: string): string;
}

/** The branches for a word that is the value of the option before it. */
function valueCases(commands: readonly Described[], actions: ValueActions): string {
  return commands
    .flatMap(({ name, flags }) =>
      flags.flatMap(({ long, short, value }) => {
        if (value === "none") return [];
        const spelt = [long, short].filter((flag) => flag !== undefined);
        const action = typeof value === "string" ? actions[value] : actions.words(value.join(" "));
        return `    ${spelt.map((flag) => `"${name} ${flag}"`).join("|")}) ${action} ;;`;
      }),
    )
    .join("\n");
}

/** The branches that offer the options of each command. */
function optionCases(commands: readonly Described[], offer: (flags: string) => string): string {
  return commands
    .filter(({ flags }) => flags.length > 0)
    .map(({ name, flags }) => `    ${name}) ${offer(flags.map(({ long }) => long).join(" "))} ;;`)
    .join("\n");
}
