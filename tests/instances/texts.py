"""Small trace files, written by hand, one a format."""

AZURE_2023 = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:15:51.2224670,879,55
"""

AZURE_2024 = """TIMESTAMP,ContextTokens,GeneratedTokens
2024-05-10 00:00:00.009930+00:00,2162,5
2024-05-10 00:00:00.017335+00:00,2399,6
2024-05-10 00:00:01+00:00,76,15
"""

BURSTGPT_OLD = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,230,1317,Conversation log
118,GPT-4,417,276,693,API log
"""

BURSTGPT_NEW = """Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
5.5,17,1.25,ChatGPT,472,18,490,Conversation log
45.25,,0.5,ChatGPT,1087,230,1317,Conversation log
118.0,18,2,GPT-4,417,276,693,API log
"""

MOONCAKE = """{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}
{"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": [46, 47, 2366]}
{"timestamp": 30540, "input_length": 12, "output_length": 1, "hash_ids": []}
"""

LENGTHS = """{
  "dataset": "by hand",
  "statistics": {"input_length": {"mean": 1}},
  "data": [
    {"input_length": 243, "output_length": 24},
    {"input_length": 184, "output_length": 17}
  ]
}"""

USER_CSV = """id,arrived_at,num_prefill_tokens,num_decode_tokens,text
a,0.5,100,10,hello
b,1.75,200,20,"quoted, with a comma"
c,2.0,300,30,end
"""

BAILIAN = (
    '{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 52, "output_length": 132, '
    '"type": "text", "turn": 1, "hash_ids": [1089, 1090, 1091, 6326]}\n'
    '{"chat_id": 160, "parent_chat_id": 159, "timestamp": 61.5, "input_length": 20, "output_length": 7, '
    '"type": "search", "turn": 2, "hash_ids": [1089, 1092]}\n'
    '{"chat_id": 161, "parent_chat_id": -1, "timestamp": 63.25, "input_length": 16, "output_length": 9, '
    '"type": "text", "turn": 1, "hash_ids": [17]}\n'
)

SERVEGEN = """request_id,timestamp,input_tokens,output_tokens
0,0.013,224,95
1,0.5,1800,210
2,1.75,312,40
"""

# A session of AIPerf or Dynamo, its first turn after a later one of another, and the names of Dynamo.
TURNS = """{"session_id": "a", "input_length": 300, "output_length": 40, "timestamp": 394}
{"session_id": "b", "input_length": 150, "output_length": 20, "delay": 1000}
{"session_id": "b", "input_length": 100, "output_length": 10, "timestamp": 666, "delay": null}
{"session_id": "a", "input_length": 450, "output_length": 30}
"""
