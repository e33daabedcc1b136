/**
 * The parts of undici that every request goes through, each by its own file. The index of the package loads fetch, caches,
 * mocks and more besides: 8 MB resident and 50 ms of the start.
 */
import buildConnector from "undici/lib/core/connect.js";
import Client from "undici/lib/dispatcher/client.js";
import Pool from "undici/lib/dispatcher/pool.js";

export { buildConnector, Client, Pool };
