package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// rotFilter is a filter of the protocol in gitattributes(5), "Long Running Filter Process". It rotates letters, and answers as late as
// git allows, as filters for large files do.
func rotFilter() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	readPackets(in)
	writePackets(out, "git-filter-server\n", "version=2\n")
	readPackets(in)
	writePackets(out, "capability=clean\n", "capability=smudge\n", "capability=delay\n")
	late, ready := map[string]string{}, map[string]string{}
	for {
		request := readPackets(in)
		if request == nil {
			return
		}
		path := value(request, "pathname")
		if value(request, "command") == "list_available_blobs" {
			var paths []string
			for path, content := range late {
				paths = append(paths, "pathname="+path+"\n")
				ready[path] = content
			}
			clear(late)
			writePackets(out, paths...)
			writePackets(out, "status=success\n")
			continue
		}
		content := strings.Join(readPackets(in), "")
		kept, asked := ready[path]
		switch {
		case asked:
			content = kept
			delete(ready, path)
		case value(request, "can-delay") != "":
			late[path] = content
			writePackets(out, "status=delayed\n")
			continue
		}
		writePackets(out, "status=success\n")
		writePackets(out, rot(content)...)
		writePackets(out)
	}
}

func value(packets []string, key string) string {
	for _, p := range packets {
		if v, ok := strings.CutPrefix(p, key+"="); ok {
			return strings.TrimSuffix(v, "\n")
		}
	}
	return ""
}

// rot rotates the letters of a text by half the alphabet. It returns pieces that fit into a packet.
func rot(text string) (pieces []string) {
	turned := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, text)
	for len(turned) > 0 {
		n := min(len(turned), 60000)
		pieces, turned = append(pieces, turned[:n]), turned[n:]
	}
	return pieces
}

// readPackets reads up to the next flush packet. It returns nil at the end of the input.
func readPackets(in *bufio.Reader) []string {
	packets := []string{}
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(in, head); err != nil {
			return nil
		}
		size, err := strconv.ParseUint(string(head), 16, 16)
		if err != nil {
			return nil
		}
		if size == 0 {
			return packets
		}
		body := make([]byte, size-4)
		if _, err := io.ReadFull(in, body); err != nil {
			return nil
		}
		packets = append(packets, string(body))
	}
}

func writePackets(out *bufio.Writer, packets ...string) {
	for _, p := range packets {
		fmt.Fprintf(out, "%04x%s", len(p)+4, p)
	}
	fmt.Fprint(out, "0000")
	out.Flush()
}
