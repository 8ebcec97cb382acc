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
