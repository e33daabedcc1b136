import { inspect } from "../../app/inspection.ts";
import type { InForce, Snapshot } from "../../config/snapshot.ts";
import { createLogSink } from "../../observe/log/log-sink.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  parseFlags,
} from "../arguments.ts";
import type { Command } from "../command.ts";
import { ownVersion } from "../version.ts";
import { LastExit, runUntilStopped, StopSignal } from "./run-until-stopped.ts";
import { start } from "./start.ts";

export const serve: Command = {
  help: `Usage: sallyport serve [options]

Runs the proxy. It reloads the configuration and the files that it names when they change, on SIGHUP and
on POST /-/reload of the admin listener; after an error, the old configuration stays in force. SIGTERM,
SIGINT or SIGQUIT drains: readiness fails, new requests are served for server.drain.delay, and running
requests may finish until server.drain.timeout. A second signal ends the process immediately. SIGUSR1 and
SIGUSR2 do nothing.

${CONFIGURATION_HELP}
  -h, --help            this text`,
  async run(args, terminal) {
    const stop = new StopSignal();
    const exit = new LastExit();
    const flags = parseFlags(args, CONFIGURATION_FLAGS);
    const sources = configurationSources(flags, terminal);
    const snapshot = await inspect(sources);
    const sink = createLogSink({ format: snapshot.configuration.log.format });
    const read = (inForce: InForce): Promise<Snapshot> => inspect(sources, inForce);
    const app = await start(
      { snapshot, version: ownVersion(), sink, read },
      "choose another with server.listen or admin.listen",
    );
    process.on("SIGHUP", () => void app.reload("SIGHUP"));
    return runUntilStopped(app, sink, exit, stop);
  },
};
