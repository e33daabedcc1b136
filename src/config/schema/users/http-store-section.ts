import { z } from "zod";
import { POINTER } from "../../../credentials/stores/http/http-store.ts";
import { text, whole } from "../fields.ts";
import { asking, caFile, store } from "./store-fields.ts";

const URL_MESSAGE = "must be an http or https URL without credentials and fragment";

/** An entry of `users` of the kind `http`. */
export function httpStore() {
  return store("http", {
    url: text()
      .refine(isLoginUrl, URL_MESSAGE)
      .describe("URL of the login service; Sallyport sends name and password by POST"),
    format: z
      .enum(["json", "form", "basic"])
      .default("json")
      .describe(
        "Where Sallyport sends name and password: in the body as JSON or a form, or in the Authorization header",
      ),
    fields: z
      .strictObject({
        username: text().default("username").describe("Field with the name"),
        password: text().default("password").describe("Field with the password"),
      })
      .refine(({ username, password }) => username !== password, "must be two different names")
      .prefault({})
      .describe("Names of the two fields in the body"),
    status: z
      .strictObject({
        success: statuses([200]).describe("The password is right"),
        wrong: statuses([401, 403]).describe(
          "Name or password is wrong; Sallyport asks no further store",
        ),
        unknown: statuses([]).describe("Nobody has this name; Sallyport asks the next store"),
      })
      .prefault({})
      .describe("What the status of the response means; with any other status, the login gets 503"),
    subject: pointer("/subject").describe(
      "JSON Pointer to the user's name in the response; default: the name from the login",
    ),
    groups: pointer("/groups").describe("JSON Pointer to the list of groups in the response"),
    caFile: caFile(),
    ...asking(),
  });
}

function statuses(preset: number[]) {
  return z.array(whole(200, 599)).default(preset);
}

function pointer(preset: string) {
  return z
    .string()
    .regex(POINTER, "must be a JSON Pointer (RFC 6901), such as /user/name")
    .default(preset);
}

function isLoginUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  const credentials = username !== "" || password !== "";
  return /^https?:$/.test(protocol) && !credentials && !value.includes("#");
}
