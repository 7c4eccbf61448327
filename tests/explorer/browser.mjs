// Chromium, and the few things that all tests do with a page.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import puppeteer from "puppeteer-core";

const BROWSERS = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-headless-shell", "/usr/bin/google-chrome"];
const WAIT_MS = 20_000;

/** `extra` are more arguments for the browser. */
export async function launch(extra = []) {
  const executablePath = BROWSERS.find((path) => path && existsSync(path));
  if (!executablePath) throw new Error("no Chromium here: apt-get install chromium, or set CHROMIUM to one");
  return puppeteer.launch({
    executablePath, headless: true,
    // The sandbox refuses to run as root, as CI does; the page under test is our own.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-color-profile=srgb", ...extra],
  });
}

/** A fresh profile with one page. It remembers what the console complained of. */
export async function open(browser, url, { width = 1280, height = 800, dark = false } = {}) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MS);
  page.complaints = [];
  page.on("console", (message) => {
    // A refused request is logged by the browser itself; whether it should have been is for the test to say.
    if (["error", "warn", "warning"].includes(message.type()) && !/Failed to load resource/.test(message.text())) {
      page.complaints.push(message.text());
    }
  });
  page.on("pageerror", (error) => page.complaints.push(String(error.stack ?? error)));
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([
    { name: "prefers-color-scheme", value: dark ? "dark" : "light" },
    { name: "prefers-reduced-motion", value: "reduce" },
  ]);
  await page.goto(url);
  return page;
}

export async function signIn(page, key) {
  await page.waitForSelector("#key", { visible: true });
  await page.type("#key", key);
  await page.keyboard.press("Enter");
  await page.waitForSelector("#workbench:not([hidden])");
}

/** Waits until `selector` is shown with `text` in it, and returns it. */
export async function shown(page, selector, text = "") {
  const handle = await page.waitForFunction((selector_, text_) =>
    [...document.querySelectorAll(selector_)].find((element) =>
      element.checkVisibility() && element.textContent.includes(text_)), {}, selector, text)
    .catch((error) => { throw new Error(`${selector} with “${text}” is not shown: ${error.message}`); });
  return handle.asElement();
}
export const gone = (page, selector, text = "") => page.waitForFunction((selector_, text_) =>
  ![...document.querySelectorAll(selector_)].some((element) =>
    element.checkVisibility() && element.textContent.includes(text_)), {}, selector, text)
  .catch((error) => { throw new Error(`${selector} with “${text}” is still shown: ${error.message}`); });

export async function press(page, selector, text) {
  const element = await shown(page, selector, text);
  await element.click();
}
export const textOf = (page, selector) => page.$eval(selector, (element) => element.textContent);
export const editorText = (page) => page.$eval(".editor textarea", (element) => element.value);

/** Replaces the whole text of the editor, as somebody does who selects all and pastes. */
export async function fillEditor(page, text) {
  await page.focus(".editor textarea");
  await page.$eval(".editor textarea", (element) => element.select());
  await page.evaluate((text_) => document.execCommand("insertText", false, text_), text);
  assert.equal(await editorText(page), text);
}
export const hash = (page, wanted) => page.waitForFunction((wanted_) => location.hash.includes(wanted_), {}, wanted);

/** How far the page is wider than the window. */
export const overflow = (page) => page.evaluate(() => {
  const wide = [document.documentElement, document.querySelector("#main"), document.querySelector("#side")]
    .filter((element) => element?.checkVisibility());
  return Math.max(...wide.map((element) => element.scrollWidth - element.clientWidth));
});
