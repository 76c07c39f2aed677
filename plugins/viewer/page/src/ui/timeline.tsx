// Time: a lane for each thread, one for memory, and the position of the replay.

import { scaleLinear } from "d3-scale";
import { area, curveStepAfter, line } from "d3-shape";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { backwards, bars, lanes, memory, SAVED, thinned, type Bar, type Lane, type Level } from "../lanes.ts";
import { nodeTitle } from "../graph_model.ts";
import { atTime, isInside } from "../replay.ts";
import { bytes, time } from "../units.ts";
import { Icon } from "./icons.tsx";
import type { Session } from "./session.ts";

const ROW = 13;
const GAP = 7;
const MEMORY = 44;
const AXIS = 18;

export function Timeline({ session }: { session: Session }) {
  const { recording, state, filter } = session;
  const end = Math.max(recording.events.at(-1)?.t ?? 1, 1);
  const [range, setRange] = useState<[number, number]>([0, end]);
  const [width, setWidth] = useState(800);
  const holder = useRef<HTMLDivElement>(null);
  const all = useMemo(() => lanes(recording), [recording]);
  const levels = useMemo(() => memory(recording), [recording]);
  const tasks = useMemo(() => backwards(recording), [recording]);

  useEffect(() => {
    const watch = new ResizeObserver(() => setWidth(Math.max(holder.current!.clientWidth, 100)));
    watch.observe(holder.current!);
    return () => watch.disconnect();
  }, []);

  // The view follows the replay.
  const [from, to] = range;
  useEffect(() => {
    if (state.time >= from && state.time <= to) return;
    const size = to - from;
    const start = Math.max(0, Math.min(end - size, state.time - size / 4));
    setRange([start, start + size]);
  }, [state.time]);

  const zoom = (factor: number, around = state.time) => {
    const size = Math.min(end, Math.max((to - from) * factor, Math.min(end, 5)));
    const share = (around - from) / (to - from);
    const start = Math.max(0, Math.min(end - size, around - share * size));
    setRange([start, start + size]);
  };
  const seekTo = (event: PointerEvent) => {
    const x = event.clientX - holder.current!.getBoundingClientRect().left;
    session.seek(atTime(recording, from + (x / width) * (to - from)));
  };
  const height = all.reduce((sum, lane) => sum + laneHeight(lane), 0) + (levels.length ? MEMORY + GAP : 0) + AXIS;
  const picture = useMemo(
    () => <Picture {...{ session, all, levels, tasks, from, to, width, height }} />,
    [all, levels, tasks, from, to, width, filter, height],
  );
  const cursor = ((state.time - from) / (to - from)) * width;
  return (
    <section class="panel timeline" aria-label="Timeline">
      <div class="panel-head">
        <h2>Time</h2>
        <Legend levels={levels} />
        <div class="tools">
          <button type="button" class="tool" onClick={() => zoom(0.5)} aria-label="Stretch the timeline" title="Stretch">
            <Icon name="plus" />
          </button>
          <button type="button" class="tool" onClick={() => zoom(2)} aria-label="Shrink the timeline" title="Shrink">
            <Icon name="minus" />
          </button>
          <button type="button" class="tool" onClick={() => setRange([0, end])} aria-label="Show all time" title="Show all time">
            <Icon name="fit" />
          </button>
        </div>
      </div>
      <div class="lanes">
        <div class="lane-names" aria-hidden="true">
          {all.map((lane) => (
            <span style={{ height: `${laneHeight(lane)}px` }}>{recording.threads[lane.thread].name}</span>
          ))}
          {levels.length > 0 && <span style={{ height: `${MEMORY}px` }}>memory</span>}
        </div>
        <div
          class="lane-holder"
          ref={holder}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            seekTo(event);
          }}
          onPointerMove={(event) => event.buttons & 1 && seekTo(event)}
          onWheel={(event) => {
            if (!event.ctrlKey && !event.shiftKey) return;
            event.preventDefault();
            const x = event.clientX - holder.current!.getBoundingClientRect().left;
            zoom(event.deltaY < 0 ? 0.8 : 1.25, from + (x / width) * (to - from));
          }}
        >
          {picture}
          <div class="cursor" style={{ transform: `translateX(${Math.max(-2, Math.min(width, cursor))}px)`, height: `${height - AXIS}px` }} />
        </div>
      </div>
    </section>
  );
}

function laneHeight(lane: Lane): number {
  return lane.depth * ROW + GAP;
}

function Legend({ levels }: { levels: Level[] }) {
  return (
    <ul class="legend">
      <li>
        <span class="swatch call" /> operator
      </li>
      <li>
        <span class="swatch run" /> node of backward
      </li>
      {levels.map(({ name, peak }) => (
        <li>
          <span class={`swatch ${name === SAVED ? "saved-level" : "memory-level"}`} />
          {name === SAVED ? "saved" : name}, at most {bytes(peak)}
        </li>
      ))}
    </ul>
  );
}

interface PictureProperties {
  session: Session;
  all: Lane[];
  levels: Level[];
  tasks: [number, number][];
  from: number;
  to: number;
  width: number;
  height: number;
}

/** All but the cursor: drawn anew only when the range, the width or the filter changes. */
function Picture({ session, all, levels, tasks, from, to, width, height }: PictureProperties) {
  const { recording, filter } = session;
  const x = scaleLinear([from, to], [0, width]);
  let top = 0;
  return (
    <svg width={width} height={height} class="time-picture" role="img" aria-label="What ran when, on each thread, and memory">
      {tasks.map(([start, end]) => (
        <rect class="task" x={Math.max(0, x(start))} y={0} width={Math.max(0, Math.min(width, x(end)) - Math.max(0, x(start)))} height={height - AXIS} />
      ))}
      {all.map((lane) => {
        const y = top;
        top += laneHeight(lane);
        return (
          <g transform={`translate(0 ${y})`}>
            {bars(lane, from, to, width).map((bar) => (
              <LaneBar {...{ bar, session }} dim={filter >= 0 && !isInside(recording, bar.module, filter)} />
            ))}
          </g>
        );
      })}
      {levels.length > 0 && <Memory {...{ levels, from, to, width }} top={top} />}
      <g class="axis" transform={`translate(0 ${height - AXIS})`}>
        <line x2={width} />
        {x.ticks(Math.max(2, width / 130)).map((tick) => (
          <g transform={`translate(${x(tick)} 0)`}>
            <line y2={4} />
            <text y={14} text-anchor={x(tick) < 20 ? "start" : x(tick) > width - 24 ? "end" : "middle"}>
              {time(tick)}
            </text>
          </g>
        ))}
      </g>
    </svg>
  );
}

function LaneBar({ bar, session: { recording }, dim }: { bar: Bar; session: Session; dim: boolean }) {
  const name = bar.kind === "call" ? recording.calls[bar.index]?.op : nodeTitle(recording, bar.index);
  const text = bar.spans > 1 ? `${bar.spans} of them` : `${name}, ${time(bar.end - bar.start)}`;
  const fits = bar.spans === 1 && bar.width > 26;
  return (
    <g class={`bar ${bar.kind}${dim ? " dim" : ""}`}>
      <rect x={bar.x} y={bar.depth * ROW + 1} width={Math.max(bar.width - 0.4, 0.6)} height={ROW - 2} rx={Math.min(2, bar.width / 3)}>
        <title>{text}</title>
      </rect>
      {fits && (
        <text x={bar.x + 3} y={bar.depth * ROW + 9.5} aria-hidden="true">
          {String(name).slice(0, Math.floor((bar.width - 6) / 5.2))}
        </text>
      )}
    </g>
  );
}

function Memory({ levels, from, to, width, top }: { levels: Level[]; from: number; to: number; width: number; top: number }) {
  const x = scaleLinear([from, to], [0, width]);
  const y = scaleLinear([0, Math.max(...levels.map((level) => level.peak), 1)], [MEMORY - 2, 2]);
  const filled = area<[number, number]>()
    .x((point) => x(point[0]))
    .y0(MEMORY)
    .y1((point) => y(point[1]))
    .curve(curveStepAfter);
  const drawn = line<[number, number]>()
    .x((point) => x(point[0]))
    .y((point) => y(point[1]))
    .curve(curveStepAfter);
  return (
    <g class="memory" transform={`translate(0 ${top})`}>
      {levels.map((level) => {
        const points = thinned(level.points, from, to, width);
        return level.name === SAVED ? (
          <path class="saved-level" d={drawn(points) ?? ""} />
        ) : (
          <path class="memory-level" d={filled(points) ?? ""} />
        );
      })}
    </g>
  );
}
