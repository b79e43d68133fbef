// SPDX-License-Identifier: Apache-2.0

// The official Go SDK. The server is named by OPEN_SANDBOX_DOMAIN, a key by OPEN_SANDBOX_API_KEY, as
// the SDK reads them. Speaks TAP, a point for each check.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"reflect"
	"regexp"
	"runtime/debug"
	"sort"
	"strings"
	"time"

	opensandbox "github.com/alibaba/OpenSandbox/sdks/sandbox/go"
)

var (
	config = opensandbox.ConnectionConfig{}
	ctx    = context.Background()

	sandbox   *opensandbox.Sandbox
	execd     *opensandbox.ExecdClient // for what the Sandbox has no method for
	manager   *opensandbox.SandboxManager
	directory string
	content   = make([]byte, 300_000)
)

// --- checking ---

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func eq(got, want any) {
	if !reflect.DeepEqual(got, want) {
		panic(fmt.Sprintf("got %#v, want %#v", got, want))
	}
}

func refused(err error, status int) *opensandbox.APIError {
	var e *opensandbox.APIError
	if !errors.As(err, &e) {
		panic(fmt.Sprintf("not refused by the API: %v", err))
	}
	eq(e.StatusCode, status)
	return e
}

func near(got, want time.Time, tolerance time.Duration) {
	if d := got.Sub(want); d > tolerance || d < -tolerance {
		panic(fmt.Sprintf("%v is not near %v", got, want))
	}
}

// --- helpers ---

func at(name string) string { return path.Join(directory, name) }

func run(req opensandbox.RunCommandRequest, h *opensandbox.ExecutionHandlers) *opensandbox.Execution {
	e, err := sandbox.RunCommandWithOpts(ctx, req, h)
	must(err)
	return e
}

func shell(command string) *opensandbox.Execution {
	return run(opensandbox.RunCommandRequest{Command: command}, nil)
}

func stderr(e *opensandbox.Execution) string {
	var lines []string
	for _, m := range e.Stderr {
		lines = append(lines, m.Text)
	}
	return strings.Join(lines, "\n")
}

// What a server on that port of the sandbox answers.
func ask(port int, path string) string {
	end, err := sandbox.GetEndpoint(ctx, port)
	must(err)
	if strings.Contains(end.Endpoint, "://") || strings.HasSuffix(end.Endpoint, "/") {
		panic(end.Endpoint)
	}
	req, err := http.NewRequest("GET", "http://"+end.Endpoint+path, nil)
	must(err)
	for k, v := range end.Headers {
		req.Header.Set(k, v)
	}
	answer, err := http.DefaultClient.Do(req)
	must(err)
	defer answer.Body.Close()
	eq(answer.StatusCode, 200)
	body, err := io.ReadAll(answer.Body)
	must(err)
	return string(body)
}

// The SDK can only poll the status of a command. The agent reports it in its stream.
func untilEnded(id string) *opensandbox.CommandStatusResponse {
	ask(opensandbox.DefaultExecdPort, "/command/"+id+"/logs?follow=true")
	status, err := execd.GetCommandStatus(ctx, id)
	must(err)
	eq(status.Running, false)
	return status
}

func upload(name string, data []byte, mode int) {
	must(sandbox.UploadFile(ctx, bytes.NewReader(data), opensandbox.UploadFileOptions{
		Metadata: opensandbox.FileMetadata{Path: at(name), Mode: mode}}))
}

func download(name, byteRange string, lines ...opensandbox.DownloadFileOptions) []byte {
	body, err := sandbox.DownloadFile(ctx, at(name), byteRange, lines...)
	must(err)
	defer body.Close()
	data, err := io.ReadAll(body)
	must(err)
	return data
}

func create(opts opensandbox.SandboxCreateOptions) *opensandbox.Sandbox {
	opts.Image = image()
	b, err := opensandbox.CreateSandbox(ctx, config, opts)
	must(err)
	return b
}

func state() opensandbox.SandboxState {
	info, err := sandbox.GetInfo(ctx)
	must(err)
	return info.Status.State
}

func list(opts opensandbox.ListOptions) (ids []string, p opensandbox.PaginationInfo) {
	found, err := manager.ListSandboxInfos(ctx, opts)
	must(err)
	for _, i := range found.Items {
		ids = append(ids, i.ID)
	}
	return ids, found.Pagination
}

// --- the checks ---

var checks = []struct {
	name string
	run  func()
}{
	{"create waits for the agent", func() {
		timeout := 300
		sandbox = create(opensandbox.SandboxCreateOptions{
			TimeoutSeconds: &timeout,
			Env:            map[string]string{"GIVEN": "at creation"},
			Metadata:       map[string]string{"project": "interop", "language": "go"},
			ResourceLimits: opensandbox.ResourceLimits{"cpu": "500m", "memory": "256Mi"},
		})
		manager = opensandbox.NewSandboxManager(config)
		end, err := sandbox.GetEndpoint(ctx, opensandbox.DefaultExecdPort)
		must(err)
		execd = opensandbox.NewExecdClient("http://"+end.Endpoint, "",
			opensandbox.WithHeaders(end.Headers))
		directory = path.Join(shell("pwd").Text(), "work")
	}},
	{"info of the sandbox", func() {
		info, err := sandbox.GetInfo(ctx)
		must(err)
		eq(info.ID, sandbox.ID())
		eq(info.Status.State, opensandbox.StateRunning)
		eq(info.Entrypoint, []string{"tail", "-f", "/dev/null"})
		eq(info.Metadata, map[string]string{"project": "interop", "language": "go"})
		eq(info.Image.URI, image())
		near(info.CreatedAt, time.Now(), time.Minute)
		near(*info.ExpiresAt, time.Now().Add(5*time.Minute), time.Minute)
	}},
	{"health, and connecting by id", func() {
		eq(sandbox.IsHealthy(ctx), true)
		other, err := opensandbox.ConnectSandbox(ctx, config, sandbox.ID(), opensandbox.ReadyOptions{})
		must(err)
		e, err := other.RunCommand(ctx, "echo connected", nil)
		must(err)
		eq(e.Text(), "connected")
		must(other.Close())
	}},
	{"metrics", func() {
		m, err := sandbox.GetMetrics(ctx)
		must(err)
		eq(m.CPUCount > 0 && m.CPUUsedPct >= 0 && m.CPUUsedPct <= 100, true)
		eq(m.MemUsedMB > 0 && m.MemUsedMB <= m.MemTotalMB, true)
		near(time.UnixMilli(m.Timestamp), time.Now(), time.Minute)
	}},
	{"run: output and success", func() {
		e := shell("echo hello; echo world; echo apart >&2")
		eq(e.Text(), "hello\nworld")
		eq(stderr(e), "apart")
		eq(*e.ExitCode, 0)
		eq(e.ID != "" && e.Complete != nil && e.Error == nil, true)
	}},
	{"run: failure with its exit code", func() {
		e := shell("echo before; exit 3")
		eq(e.Text(), "before")
		eq(*e.ExitCode, 3)
		eq(e.Error.Name+" "+e.Error.Value, "CommandExecError 3")
		eq(*shell("no-such-command-here").ExitCode, 127)
	}},
	{"run: environment, directory, timeout", func() {
		must(sandbox.CreateDirectory(ctx, at("wd"), 755))
		e := run(opensandbox.RunCommandRequest{Command: `echo "$GREETING $GIVEN"; pwd`, Cwd: at("wd"),
			Envs: map[string]string{"GREETING": "grüße $HOME"}}, nil)
		eq(e.Text(), "grüße $HOME at creation\n"+at("wd"))
		began := time.Now()
		e = run(opensandbox.RunCommandRequest{Command: "sleep 20", Timeout: 300}, nil)
		eq(time.Since(began) < 10*time.Second && e.Error != nil, true)
	}},
	{"run: much output, whole and in order", func() {
		e := shell("seq 1 20000")
		eq(len(e.Stdout), 20000)
		for i, m := range e.Stdout {
			eq(m.Text, fmt.Sprint(i+1))
		}
	}},
	{"run: handlers hear of output before the end", func() {
		var heard []string
		hear := func(text string) error { heard = append(heard, text); return nil }
		in := func(command string) opensandbox.RunCommandRequest {
			return opensandbox.RunCommandRequest{Command: command, Cwd: at("wd")}
		}
		eq(*run(in("mkfifo held"), nil).ExitCode, 0)
		run(in(`echo now; read x <held; echo "then $x"`), &opensandbox.ExecutionHandlers{
			OnInit: func(opensandbox.ExecutionInit) error { return hear("init") },
			OnStdout: func(m opensandbox.OutputMessage) error {
				if m.Text == "now" {
					run(in("echo go >held"), nil)
				}
				return hear(m.Text)
			},
			OnComplete: func(opensandbox.ExecutionComplete) error { return hear("complete") },
		})
		eq(heard, []string{"init", "now", "then go", "complete"})
	}},
	{"background: state and logs", func() {
		e := run(opensandbox.RunCommandRequest{Command: "echo one; echo two >&2; exit 4",
			Background: true}, nil)
		s := untilEnded(e.ID)
		eq(*s.ExitCode, int32(4))
		logs, err := execd.GetCommandLogs(ctx, e.ID, nil)
		must(err)
		eq(*logs, opensandbox.CommandLogsResponse{Output: "one\ntwo\n", Cursor: 8})
		cursor := int64(4)
		logs, err = execd.GetCommandLogs(ctx, e.ID, &cursor)
		must(err)
		eq(logs.Output, "two\n")
	}},
	{"background: interrupt", func() {
		e := run(opensandbox.RunCommandRequest{Command: "sleep 100", Background: true}, nil)
		must(execd.InterruptCommand(ctx, e.ID))
		eq(*untilEnded(e.ID).ExitCode != 0, true)
	}},
	{"a session keeps directory and variables", func() {
		s, err := sandbox.CreateSession(ctx)
		must(err)
		in := func(command string) *opensandbox.Execution {
			e, err := sandbox.RunInSession(ctx, s.ID, opensandbox.RunInSessionRequest{Command: command},
				nil)
			must(err)
			return e
		}
		in("cd " + at("wd") + ` && export KEPT="a b"`)
		eq(in(`echo "$KEPT"; pwd`).Text(), "a b\n"+at("wd"))
		eq(*in("exit 7").ExitCode, 7)
		must(sandbox.DeleteSession(ctx, s.ID))
	}},
	{"files: upload and download", func() {
		upload("new/text", []byte("grüße\n"), 640)
		upload("new/bytes", content, 0)
		must(sandbox.UploadFiles(ctx, []opensandbox.UploadFileEntry{
			{File: strings.NewReader("a"), Options: opensandbox.UploadFileOptions{FileName: "a",
				Metadata: opensandbox.FileMetadata{Path: at("sev/a")}}},
			{File: strings.NewReader(""), Options: opensandbox.UploadFileOptions{
				Metadata: opensandbox.FileMetadata{Path: at(`sev/ü 漢 "x" %20`)}}},
		}))
		eq(string(download("new/text", "")), "grüße\n")
		eq(bytes.Equal(download("new/bytes", ""), content), true)
		eq(bytes.Equal(download("new/bytes", "bytes=100-199"), content[100:200]), true)
		eq(string(download("sev/a", "")), "a")
		eq(string(download(`sev/ü 漢 "x" %20`, "")), "")
		upload("lines", []byte("1\n2\n3\n4\n"), 0)
		eq(string(download("lines", "", opensandbox.DownloadFileOptions{Offset: 2, Limit: 2})), "2\n3")
	}},
	{"files: info and permissions", func() {
		must(sandbox.SetPermissions(ctx, opensandbox.PermissionsRequest{at("new/text"): {Mode: 444}}))
		info, err := sandbox.GetFileInfo(ctx, at("new/text"))
		must(err)
		f := info[at("new/text")]
		eq(f.Path, at("new/text"))
		eq([]any{f.Size, f.Mode}, []any{int64(8), 444})
		near(f.ModifiedAt, time.Now(), time.Minute)
		_, err = sandbox.GetFileInfo(ctx, at("nobody"))
		eq(refused(err, 404).Response.Code, "FILE_NOT_FOUND")
	}},
	{"files: move, replace, delete", func() {
		must(sandbox.MoveFiles(ctx, opensandbox.MoveRequest{{Src: at("new/bytes"), Dest: at("moved/far")}}))
		eq(len(download("moved/far", "")), len(content))
		upload("letter", []byte("a-b-a"), 640)
		counts, err := sandbox.ReplaceInFilesDetailed(ctx, opensandbox.ReplaceRequest{
			at("letter"): {Old: "a", New: "漢"}})
		must(err)
		eq(counts, opensandbox.ReplaceResponse{at("letter"): {ReplacedCount: 2}})
		eq(string(download("letter", "")), "漢-b-漢")
		must(sandbox.DeleteFiles(ctx, []string{at("letter"), at("never-was")}))
		_, err = sandbox.DownloadFile(ctx, at("letter"), "")
		refused(err, 404)
	}},
	{"files: search and directories", func() {
		for _, name := range []string{"s/one.txt", "s/deep/two.txt", "s/three.md"} {
			upload(name, []byte(name), 0)
		}
		files, err := sandbox.SearchFiles(ctx, at("s"), "*.txt")
		must(err)
		var found []string
		for _, f := range files {
			found = append(found, f.Path)
		}
		sort.Strings(found)
		eq(found, []string{at("s/deep/two.txt"), at("s/one.txt")})
		files, err = sandbox.ListDirectory(ctx, at("s"))
		must(err)
		eq(len(files), 3)
		must(sandbox.DeleteDirectory(ctx, at("s")))
		_, err = sandbox.GetFileInfo(ctx, at("s"))
		refused(err, 404)
	}},
	{"a server of the user", func() {
		upload("site/page.txt", []byte("from inside\n"), 0)
		port := regexp.MustCompile(`Serving HTTP on \S+ port (\d+)`)
		var served, id string
		run(opensandbox.RunCommandRequest{Cwd: at("site"),
			Command: "exec python3 -u -m http.server 0 --bind 127.0.0.1"},
			&opensandbox.ExecutionHandlers{
				OnInit: func(i opensandbox.ExecutionInit) error { id = i.ID; return nil },
				OnStdout: func(m opensandbox.OutputMessage) error {
					found := port.FindStringSubmatch(m.Text)
					if found == nil {
						return nil
					}
					var n int
					fmt.Sscan(found[1], &n)
					served = ask(n, "/page.txt")
					return execd.InterruptCommand(ctx, id)
				},
			})
		eq(served, "from inside\n")
	}},
	{"metadata", func() {
		two := "two"
		info, err := sandbox.PatchMetadata(ctx, opensandbox.MetadataPatch{"stage": &two, "project": nil})
		must(err)
		eq(info.Metadata, map[string]string{"stage": "two", "language": "go"})
	}},
	{"lists", func() {
		endless := create(opensandbox.SandboxCreateOptions{ManualCleanup: true,
			Metadata: map[string]string{"language": "go"}})
		info, err := endless.GetInfo(ctx)
		must(err)
		eq(info.ExpiresAt == nil, true)
		labels := map[string]string{"language": "go"}
		running := []opensandbox.SandboxState{opensandbox.StateRunning}
		ids, p := list(opensandbox.ListOptions{States: running, Metadata: labels, PageSize: 1})
		eq(ids, []string{endless.ID()})
		eq(p, opensandbox.PaginationInfo{Page: 1, PageSize: 1, TotalItems: 2, TotalPages: 2,
			HasNextPage: true})
		ids, _ = list(opensandbox.ListOptions{Metadata: map[string]string{"language": "go",
			"stage": "two"}})
		eq(ids, []string{sandbox.ID()})
		must(manager.KillSandbox(ctx, endless.ID()))
	}},
	{"renewal", func() {
		answer, err := sandbox.Renew(ctx, 20*time.Minute)
		must(err)
		near(answer.ExpiresAt, time.Now().Add(20*time.Minute), time.Minute)
		info, err := sandbox.GetInfo(ctx)
		must(err)
		near(*info.ExpiresAt, answer.ExpiresAt, time.Second)
	}},
	{"pause and resume, twice", func() {
		upload("kept", []byte("over the pause"), 0)
		sleeper := run(opensandbox.RunCommandRequest{Command: "sleep 100", Background: true}, nil)
		for i := 0; i < 2; i++ {
			must(sandbox.Pause(ctx))
			eq(state(), opensandbox.StatePaused)
			ids, _ := list(opensandbox.ListOptions{
				States: []opensandbox.SandboxState{opensandbox.StatePaused}})
			eq(ids, []string{sandbox.ID()})
			refused(sandbox.Pause(ctx), 409)
			_, err := sandbox.RunCommand(ctx, "true", nil)
			refused(err, 409)
			sandbox, err = sandbox.Resume(ctx, opensandbox.ReadyOptions{})
			must(err)
			eq(state(), opensandbox.StateRunning)
			eq(shell("cat "+at("kept")).Text(), "over the pause")
		}
		status, err := execd.GetCommandStatus(ctx, sleeper.ID)
		must(err)
		eq(status.Running, true)
		refused(manager.ResumeSandbox(ctx, sandbox.ID()), 409)
	}},
	{"an unknown sandbox has a request id", func() {
		_, err := manager.GetSandboxInfo(ctx, "no-such-sandbox")
		eq(refused(err, 404).RequestID != "", true)
	}},
	{"kill", func() {
		must(sandbox.Kill(ctx))
		_, err := sandbox.GetInfo(ctx)
		refused(err, 404)
	}},
}

func runOne(number int, name string, check func()) (good bool) {
	defer func() {
		if e := recover(); e != nil {
			fmt.Printf("not ok %d - %s\n", number, name)
			said := fmt.Sprintf("%v\n%s", e, debug.Stack())
			fmt.Println("# " + strings.ReplaceAll(strings.TrimSpace(said), "\n", "\n# "))
		}
	}()
	check()
	fmt.Printf("ok %d - %s\n", number, name)
	return true
}

func main() {
	_, config.UseServerProxy = os.LookupEnv("SCENARIO_PROXY")
	for i := range content {
		content[i] = byte(i*31 ^ i>>8)
	}
	fmt.Printf("1..%d\n", len(checks))
	status := 0
	for i, c := range checks {
		name := fmt.Sprintf("%s, %s: %s", opensandbox.Version, os.Getenv("SCENARIO_MODE"), c.name)
		if !runOne(i+1, name, c.run) {
			status = 1
		}
	}
	os.Exit(status)
}

func image() string {
	if name := os.Getenv("SCENARIO_IMAGE"); name != "" {
		return name
	}
	return "python:3.11"
}
