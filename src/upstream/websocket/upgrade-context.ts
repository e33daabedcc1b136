import type { UpgradeRequest } from "../../core/request/forwarder.ts";
import type { PermittedRequest } from "../http/permitted-request.ts";

/** A permitted upgrade. Its response is used if the backend refuses. */
export type UpgradeContext = Omit<PermittedRequest, keyof UpgradeRequest | "copy"> & UpgradeRequest;
