import { mount } from 'svelte';
import App from './App.svelte';
import { source } from './data/source';
import './style.css';

const target = document.getElementById('app');
if (!target) throw new Error('the page has no element to draw in');

try {
  mount(App, { target, props: { source: source() } });
} catch (error) {
  target.textContent = `This report can't be shown: ${error instanceof Error ? error.message : String(error)}`;
}
