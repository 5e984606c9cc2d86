#!/usr/bin/env node
// drive.mjs — does in a real browser what a person does at docs/page.html, and fails where the page does something else.
//   CHROMIUM=/usr/bin/chromium node drive.mjs PAGE AGUI SLOW [--picture FILE.png] [--token TOKEN]
// PAGE is where the page is served, AGUI an agent that plays the script that comes with hutch, SLOW one that never
// answers "slow" and fails at "broken". With --token the agents need one.
import { parseArgs } from "node:util";
import assert from "node:assert/strict";
import puppeteer from "puppeteer-core";

const { values: o, positionals: [page, agui, slow] } = parseArgs({ allowPositionals: true, options: { picture: { type: "string" }, token: { type: "string" } } });
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const faults = [];
try {
  const tab = await browser.newPage();
  await tab.setViewport({ width: 900, height: 760 });
  tab.setDefaultTimeout(60_000);
  tab.on("pageerror", (e) => faults.push(`the page threw ${e.message}`));
  tab.on("console", (m) => { if (m.type() === "warn" || m.type() === "error") faults.push(`the console says ${m.text()} (${m.location().url})`); });

  const state = (want) => tab.waitForFunction((s) => document.body.dataset.state === s, {}, want);
  const lines = () => tab.$$eval("#talk > *", (all) => all.map((e) => `${e.className}: ${e.innerText.replace(/\s+/g, " ").trim()}`));
  const last = async () => (await lines()).at(-1);
  const click = (text) => tab.locator(`::-p-xpath(//button[text()="${text}"])`).click();
  const tell = async (text, until = "idle") => {
    const before = (await lines()).length;
    await tab.type("#text", text);
    await tab.keyboard.press("Enter");
    await tab.waitForFunction((n) => document.querySelectorAll("#talk > *").length > n, {}, before);
    await state(until);
  };
  const open = async (agent) => {
    await tab.goto(`${page}?agui=${encodeURIComponent(agent)}`);
    await state("idle");
  };

  await open(agui);
  if (o.token) {
    await tab.waitForSelector("#token:not([hidden])");
    assert.deepEqual(faults.splice(0).filter((f) => !f.includes("401")), [], "without a token");
    await tab.type("#secret", o.token);
    await tab.keyboard.press("Enter");
  }
  await tab.waitForFunction(() => /\d+ tools$/.test(document.getElementById("who").textContent));

  // A tool of the server, from one of the examples; the text comes in pieces.
  await tab.evaluate(() => {
    globalThis.seen = new Set();
    new MutationObserver(() => seen.add([...document.querySelectorAll(".assistant")].at(-1)?.textContent)).observe(document.getElementById("talk"), { childList: true });
  });
  await click("count the words: to be or not to be");
  await tab.waitForSelector(".assistant");
  await state("idle");
  assert.deepEqual(await lines(), [
    "user: count the words: to be or not to be", "assistant: I count it with a tool.", "tool: text_stats done", "assistant: That has 6 words and 18 characters.",
  ]);
  const pieces = await tab.evaluate(() => [...seen].filter((text) => text && "That has 6 words and 18 characters.".startsWith(text)).length);
  assert.ok(pieces > 1, `the answer came in ${pieces} piece`);
  assert.equal(await tab.$eval("#hints", (e) => e.hidden), true);
  await tab.click(".tool summary");
  assert.match(await tab.$eval(".tool", (e) => e.innerText), /"text": "to be or not to be"[^]*"words": 6/);
  await tab.click(".tool summary");

  // A tool of the page, and how it fails.
  await tell("paint the page lavender");
  assert.equal(await last(), "assistant: It says: the page is lavender now.");
  assert.equal(await tab.evaluate(() => document.body.style.background), "lavender");
  await tell("paint it octarine");
  assert.equal(await last(), "assistant: It says: octarine is not a CSS color.");
  assert.ok((await lines()).includes("tool: paint_page failed"));

  // A call that waits for a person: yes, no, and an answer after the page was loaded again.
  await tell("note: the Moon pulls at the sea", "asking");
  assert.match(await last(), /^ask: Allow note_add with .*the Moon pulls at the sea.* Allow Deny$/);
  assert.equal(await tab.$eval("#text", (e) => e.disabled), true);
  if (o.picture) {
    await new Promise((done) => setTimeout(done, 500)); // until the color has faded in
    await tab.screenshot({ path: o.picture });
  }
  await click("Allow");
  await state("idle");
  assert.equal(await last(), "assistant: Noted, as number 1. Say: list my notes");
  await tell("note: the Earth is flat", "asking");
  await click("Deny");
  await state("idle");
  assert.match(await last(), /^assistant: (?!Noted)/);
  if (!o.token) {
    await tell("note: the tide comes in twice a day", "asking");
    const before = await lines();
    await tab.reload();
    await state("asking");
    assert.deepEqual(await lines(), before);
    await click("Allow");
    await state("idle");
  }
  await tell("list my notes");
  assert.match(await last(), /the Moon pulls at the sea/);
  assert.doesNotMatch(await last(), /flat/);

  // What an agent says is text.
  await tell("count the words: <img src=x onerror=alert(1)>");
  assert.equal(await tab.$("#talk img"), null);

  // A new thread, a run that is stopped, and one that fails. Its server refuses to be asked of a thread that has not begun.
  if (!o.token) {
    await Promise.all([tab.waitForNavigation(), click("New")]);
    await state("idle");
    assert.deepEqual(await lines(), []);
    assert.equal(await tab.$eval("#hints", (e) => e.hidden), false);
    await open(slow);
    await tell("slow", "running");
    await click("Stop");
    await state("idle");
    assert.equal(await last(), "wrong: Stopped.");
    await tell("broken");
    assert.match(await last(), /^wrong: ./);
  }
  assert.deepEqual(faults.filter((f) => !/404 .*\/threads\//.test(f)), []);
} finally {
  await browser.close();
}
console.log("PASS");
