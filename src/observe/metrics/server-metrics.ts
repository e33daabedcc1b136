import { REMOTE_CHECK_RESULTS } from "../../core/remote-check.ts";
import { STORE_RESULTS } from "../../core/request/outcome.ts";
import { SHARED_OPERATIONS } from "../../core/shared-parts.ts";
import type { MetricDefinitions } from "./define-metrics.ts";
import type { Events } from "./event-metrics.ts";
import type { GaugeSources, StoreState } from "./gauges.ts";
import { LOGIN_BUCKETS, REQUEST_BUCKETS } from "./latency-histogram.ts";
import { LabelSet } from "./series.ts";

/** The metrics of other servers: user stores, checks, the state server. Unknown stores and checks are not counted. */

export function storeMetrics(
  define: MetricDefinitions,
  stores: LabelSet,
  sources: GaugeSources,
): Events<"storeAnswered" | "outdatedHashUsed"> {
  const answered = define.table(
    "user_store_requests_total",
    "Password checks by a user store.",
    stores,
    { result: STORE_RESULTS },
  );
  const durationsHelp = "Duration of these checks.";
  const durations = define.durations(
    "user_store_request_duration_seconds",
    durationsHelp,
    LOGIN_BUCKETS,
    stores,
  );
  const outdatedHashUsed = define.names(
    "logins_with_outdated_hash_total",
    "Logins by an outdated password hash.",
    stores,
  );
  const gauge = (name: string, help: string, part: keyof StoreState): void => {
    const read = () => stores.samples((store) => sources.storeState(store)[part]);
    define.gauge(name, help, "sum", read, stores.names);
  };
  gauge("user_store_connections", "Open connections to a user store.", "connections");
  gauge("users_with_outdated_hash", "Users with an outdated password hash.", "outdated");
  return {
    outdatedHashUsed,
    storeAnswered(store, result, seconds) {
      answered(store, result);
      durations.record(stores.indexOf(store), seconds);
    },
  };
}

/** @param checks the kind and the name of each. */
export function remoteMetrics(
  define: MetricDefinitions,
  checks: LabelSet,
): Events<"remoteChecked"> {
  const checked = define.table("remote_checks_total", "Checks by other servers.", checks, {
    result: REMOTE_CHECK_RESULTS,
  });
  const durations = define.durations(
    "remote_check_duration_seconds",
    "Duration of these checks.",
    REQUEST_BUCKETS,
    checks,
  );
  return {
    remoteChecked({ kind, name }, result, seconds) {
      const check = `${kind} ${name}`;
      checked(check, result);
      if (seconds !== undefined) durations.record(checks.indexOf(check), seconds);
    },
  };
}

/** Only the main thread uses the state server; the others never count anything. */
export function sharedStateMetrics(
  define: MetricDefinitions,
  sources: GaugeSources,
): Events<"sharedStateAsked"> {
  const operations = new LabelSet(["operation"], SHARED_OPERATIONS);
  const asked = define.table(
    "shared_state_operations_total",
    "Requests to the state server of all replicas.",
    operations,
    { result: ["ok", "failed"] },
  );
  const durations = define.durations(
    "shared_state_operation_duration_seconds",
    "Duration of these requests.",
    REQUEST_BUCKETS,
    operations,
  );
  define.readCounter(
    "shared_state_lost_attempts_total",
    "Login attempts not published to other replicas.",
    () => sources.sharedState()?.lost ?? 0,
  );
  define.gauge("shared_state_up", "1 while the state server can be used.", "max", () => {
    const current = sources.sharedState();
    return current && Number(current.up);
  });
  return {
    sharedStateAsked(operation, successful, seconds) {
      asked(operation, successful ? "ok" : "failed");
      if (seconds !== undefined) durations.record(operations.indexOf(operation), seconds);
    },
  };
}
