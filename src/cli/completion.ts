import { parseFlags } from "./arguments.ts";
import { type Command, EXIT, UsageError } from "./command.ts";
import { formatFrom } from "./terminal/format.ts";

/**
 * Creates the command that prints completion scripts.
 *
 * @param commands the names of all commands.
 * @param helpOf gives the help text of a command; its options are completed.
 */
export function createCompletion(
  commands: readonly string[],
  helpOf: (name: string) => Promise<string>,
): Command {
  return {
    help: `Usage: sallyport completion SHELL

Prints a completion script for bash, zsh or fish. For example, in ~/.bashrc: source <(sallyport completion bash)

      --shell SHELL         the same
  -h, --help                this text`,
    async run(args, terminal) {
      const [word = "", ...more] = args;
      const isShell = word !== "" && !word.startsWith("-") && more.length === 0;
      const shell = isShell ? word : parseFlags(args, { shell: { type: "string" } }).shell;
      if (shell === undefined) throw new UsageError("say which shell: bash, zsh or fish");
      const kind = formatFrom(shell, ["bash", "zsh", "fish"], "--shell");
      const words = await Promise.all(
        commands.map(async (name) => [name, flagsIn(await helpOf(name))] as const),
      );
      terminal.out(SCRIPTS[kind](words));
      return EXIT.done;
    },
  };
}

type Words = readonly (readonly [command: string, flags: readonly string[]])[];

/** The long options that a help text describes. */
function flagsIn(help: string): string[] {
  return Array.from(help.matchAll(/^ {2,6}(?:-\w, )?(--[a-z-]+)/gm), ([, flag = ""]) => flag);
}

const SCRIPTS: Record<"bash" | "zsh" | "fish", (words: Words) => string> = {
  bash: (words) => `_sallyport() {
  local word="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${names(words)} help" -- "$word"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
    help) COMPREPLY=($(compgen -W "${names(words)}" -- "$word")) ;;
${words.map(([name, flags]) => `    ${name}) COMPREPLY=($(compgen -W "${flags.join(" ")}" -- "$word")) ;;`).join("\n")}
  esac
}
complete -o default -F _sallyport sallyport
`,
  zsh: (words) => `#compdef sallyport
_sallyport() {
  if (( CURRENT == 2 )); then
    compadd ${names(words)} help
    return
  fi
  case "\${words[2]}" in
    help) compadd ${names(words)} ;;
${words.map(([name, flags]) => `    ${name}) compadd -- ${flags.join(" ")}; _files ;;`).join("\n")}
  esac
}
compdef _sallyport sallyport
`,
  fish: (words) =>
    [
      `complete -c sallyport -n __fish_use_subcommand -f -a "${names(words)} help"`,
      `complete -c sallyport -n "__fish_seen_subcommand_from help" -f -a "${names(words)}"`,
      ...words.flatMap(([name, flags]) =>
        flags.map(
          (flag) =>
            `complete -c sallyport -n "__fish_seen_subcommand_from ${name}" -l ${flag.slice(2)}`,
        ),
      ),
      "",
    ].join("\n"),
};

function names(words: Words): string {
  return words.map(([name]) => name).join(" ");
}
