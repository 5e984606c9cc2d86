#!/usr/bin/env node
// streams.mjs: reads streams of events from standard input, one JSON array a line, and holds each to the schema and to the order that the 1.0 client
// keeps; with --shapes to the schema alone. Prints what it finds wrong; exit 1 if there is anything, 3 if no stream came.
import readline from "node:readline";
import { verifyEvents } from "@ag-ui/client";
import { EventSchemas } from "@ag-ui/core/schemas";
import { from, lastValueFrom } from "rxjs";

let streams = 0, faults = 0;
const fault = (what) => { faults++; console.log(`stream ${streams}: ${what}`); };
for await (const line of readline.createInterface({ input: process.stdin })) {
  streams++;
  const events = JSON.parse(line);
  for (const e of events) {
    const r = EventSchemas.safeParse(e);
    if (!r.success) fault(`${JSON.stringify(e)}: ${r.error.issues.map((i) => `/${i.path.join("/")}: ${i.message}`).join("; ")}`);
  }
  if (process.argv.includes("--shapes")) continue;
  try {
    await lastValueFrom(from(events).pipe(verifyEvents()), { defaultValue: null });
  } catch (e) {
    fault(`${e.message} in ${line}`);
  }
}
console.log(`${streams} streams, ${faults} faults`);
process.exit(streams === 0 ? 3 : faults ? 1 : 0);
