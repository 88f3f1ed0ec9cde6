package mssqltest

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// session is one connection.
type session struct {
	server   *Server
	lite     *sql.Conn
	settings map[string]string
	depth    int    // @@TRANCOUNT
	begun    bool   // the transaction has SQLite's lock
	id       uint64 // of the transaction
	number   int64  // SCOPE_IDENTITY() of the latest INSERT, 0 for NULL

	mu     sync.Mutex
	cancel context.CancelFunc // of the request under way
}

// hostile are the defaults of a session: the worst that "user options" and a database can set.
var hostile = map[string]string{
	"XACT_ABORT": "ON", "IMPLICIT_TRANSACTIONS": "ON", "ANSI_NULLS": "OFF", "ANSI_PADDING": "OFF",
	"ANSI_WARNINGS": "OFF", "ARITHABORT": "OFF", "CONCAT_NULL_YIELDS_NULL": "OFF", "QUOTED_IDENTIFIER": "OFF",
	"NUMERIC_ROUNDABORT": "ON", "LANGUAGE": "Deutsch", "DATEFORMAT": "dmy", "LOCK_TIMEOUT": "-1",
	"DEADLOCK_PRIORITY": "LOW", "TRANSACTION": "ISOLATION LEVEL READ UNCOMMITTED",
}

func (s *session) run(raw net.Conn) error {
	conn, err := negotiate(raw, s.server.tls.Load())
	if err != nil {
		return err
	}
	m, err := readMessage(conn)
	if err != nil || m.kind != packetLogin {
		return errors.Join(err, errProtocol)
	}
	who, err := parseLogin(m.body)
	if err != nil {
		return err
	}
	var r reply
	if who != (login{User, Password, Database}) {
		r.failure(refused(18456, "Login failed for user '"+who.user+"'."))
		r.done(0xfd, doneError, 0)
		return writeMessage(conn, packetReply, r.b)
	}
	r.loginAck()
	r.done(0xfd, 0, 0)
	if err := writeMessage(conn, packetReply, r.b); err != nil {
		return err
	}
	if s.lite, err = s.server.DB.Conn(context.Background()); err != nil {
		return err
	}
	defer s.lite.Close()
	defer s.rollback()
	s.settings = maps.Clone(hostile)
	return s.serve(conn)
}

// serve reads ahead, since an attention stops the request in progress.
func (s *session) serve(conn net.Conn) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	requests := make(chan message, 8)
	go func() {
		defer close(requests)
		defer stop() // a connection that is gone stops its request
		for {
			m, err := readMessage(conn)
			if err != nil {
				return
			}
			if m.kind == packetAttention {
				s.interrupt()
			}
			requests <- m
		}
	}()
	for m := range requests {
		if m.kind == packetAttention {
			var r reply
			r.done(0xfd, doneAttention, 0)
			if err := writeMessage(conn, packetReply, r.b); err != nil {
				return err
			}
			continue
		}
		answer, err := s.answer(ctx, m)
		if err != nil {
			return err
		}
		if err := writeMessage(conn, packetReply, answer); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
	}
}

var errSilent = errors.New("mssqltest: the connection ends without an answer")

// answer carries a request out. An error ends the connection.
func (s *session) answer(ctx context.Context, m message) ([]byte, error) {
	q, err := parseRequest(m)
	if err != nil {
		return nil, err
	}
	if m.reset {
		s.rollback()
		s.settings = maps.Clone(hostile)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.cancel = cancel
	s.mu.Unlock()

	fault := s.server.failure(q.text)
	if fault != nil && fault.Before {
		return nil, errSilent
	}
	var r reply
	last := byte(0xfd)
	if q.rpc {
		last = 0xfe
	}
	before := s.depth
	set, rows, failed := (*result)(nil), int64(0), fault
	if fault == nil || fault.Silent {
		set, rows, failed = s.execute(ctx, q)
	}
	if fault != nil && fault.Silent {
		return nil, errSilent
	}
	if failed != nil && before > 0 && (failed.Ends || s.settings["XACT_ABORT"] == "ON") {
		s.rollback()
	}
	s.tell(&r, before)
	if failed != nil {
		r.failure(failed)
		status := uint16(doneError)
		if failed.Breaks {
			status |= doneBroken
		}
		r.done(last, status, 0)
		return r.b, nil
	}
	if set != nil {
		r.result(set)
	}
	if q.out != "" {
		r.returnValue(q.out, rows)
	}
	r.done(last, doneCount, rows)
	return r.b, nil
}

// tell announces the effect of a request on the transaction. It announces a commit as a rollback: the
// driver treats both alike.
func (s *session) tell(r *reply, before int) {
	switch {
	case before == 0 && s.depth > 0:
		s.id++
		r.transaction(8, s.id)
	case before > 0 && s.depth == 0:
		r.transaction(10, s.id)
	}
}

// lock takes the writer's lock. It waits at most as long as the session waits for locks.
func (s *session) lock(ctx context.Context) *Error {
	if s.depth == 0 || s.begun {
		return nil
	}
	limit := time.Duration(s.server.lockFor.Load())
	if ms, err := strconv.Atoi(s.settings["LOCK_TIMEOUT"]); err == nil && ms >= 0 {
		limit = min(limit, time.Duration(ms)*time.Millisecond)
	}
	end := time.Now().Add(limit)
	s.server.waiting.Add(1)
	defer s.server.waiting.Add(-1)
	for ctx.Err() == nil {
		// A BEGIN that is canceled can return an error and still open a transaction, which nobody would end.
		_, err := s.lite.ExecContext(context.WithoutCancel(ctx), "BEGIN IMMEDIATE")
		switch {
		case err == nil:
			s.begun = true
			return nil
		case !isBusy(err):
			return translated(err, "")
		case time.Now().After(end):
			return refused(1222, "Lock request time out period exceeded.")
		}
		time.Sleep(time.Millisecond)
	}
	return refused(3617, "The statement was canceled.") // the client has gone, or has sent an attention
}

func (s *session) rollback() {
	s.depth = 0
	if s.begun {
		_, _ = s.lite.ExecContext(context.Background(), "ROLLBACK")
		s.begun = false
	}
}

// set changes settings by "SET NAME VALUE; …", and refuses unknown names.
func (s *session) set(text string) *Error {
	for _, part := range strings.Split(text, "; ") {
		rest, ok := strings.CutPrefix(part, "SET ")
		name, value, two := strings.Cut(rest, " ")
		if _, known := hostile[name]; !ok || !two || !known {
			return syntax(part)
		}
		s.settings[name] = value
	}
	return nil
}
